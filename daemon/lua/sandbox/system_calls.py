"""A filter that leaves a process no system calls except those that computing needs.

The filter is a classic BPF program (seccomp(2)). It compares the number of each system call with a
list; every other call fails with EPERM. The process can therefore open no file, no socket and no
process, even if a script breaks out of the Lua interpreter. On a machine whose numbers are not
listed here, and on kernels without seccomp, the resource limits of `limits.py` remain.
"""

import ctypes
import os
import struct
import sys
from typing import Final

_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_SET_SECCOMP: Final = 22
_FILTER: Final = 2

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_IF_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K
_ALLOW: Final = 0x7FFF0000
_EPERM: Final = 0x00050000 | 1
_KILL: Final = 0x80000000
#: Offsets in `struct seccomp_data`.
_NUMBER: Final = 0
_ARCHITECTURE: Final = 4

#: AUDIT_ARCH and the numbers of: read, write, close, fstat, poll or ppoll, lseek, mmap, mprotect,
#: munmap, brk, rt_sigaction, rt_sigprocmask, rt_sigreturn, readv, writev, sched_yield, mremap,
#: madvise, nanosleep, getitimer, setitimer, getpid, sendto, recvfrom, sendmsg, recvmsg, exit,
#: getrusage, times, sigaltstack, gettid, futex, clock_gettime, clock_getres, clock_nanosleep,
#: exit_group, restart_syscall, getrandom, rseq.
_X86_64: Final = (
    0xC000003E,
    (
        *(0, 1, 3, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 19, 20, 24, 25, 28, 35, 36, 38, 39, 44, 45),
        *(46, 47, 60, 98, 100, 131, 186, 202, 228, 229, 230, 231, 219, 318, 334),
    ),
)
_AARCH64: Final = (
    0xC00000B7,
    (
        *(63, 64, 57, 80, 73, 62, 222, 226, 215, 214, 134, 135, 139, 65, 66, 124, 216, 233, 101),
        *(102, 103, 172, 206, 207, 211, 212, 93, 165, 153, 132, 178, 98, 113, 114, 115, 94, 128),
        *(278, 293),
    ),
)
_MACHINES: Final = {"x86_64": _X86_64, "aarch64": _AARCH64}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def restrict(system: str = sys.platform) -> bool:
    """Install the filter for this process. False if this machine or its kernel has none."""
    machine = _MACHINES.get(os.uname().machine)
    if system != "linux" or machine is None or struct.calcsize("P") != 8:
        return False
    instructions = _program(*machine)
    buffer = ctypes.create_string_buffer(instructions, len(instructions))
    program = _Program(len(instructions) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    return bool(prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0) == 0)


def _program(architecture: int, numbers: tuple[int, ...]) -> bytes:
    """The instructions: check the architecture, compare the number, allow or refuse."""
    lines = [
        _line(_LOAD, 0, 0, _ARCHITECTURE),
        _line(_JUMP_IF_EQUAL, 1, 0, architecture),
        _line(_RETURN, 0, 0, _KILL),
        _line(_LOAD, 0, 0, _NUMBER),
    ]
    for position, number in enumerate(numbers):
        to_allow = len(numbers) - position
        lines.append(_line(_JUMP_IF_EQUAL, to_allow, 0, number))
    lines.append(_line(_RETURN, 0, 0, _EPERM))
    lines.append(_line(_RETURN, 0, 0, _ALLOW))
    return b"".join(lines)


def _line(code: int, if_true: int, if_false: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
