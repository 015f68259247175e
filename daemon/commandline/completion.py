"""`recalld completion`: tab completion for bash, zsh and fish, generated from the parser."""

import argparse
from types import SimpleNamespace
from typing import Any, Final, cast

from daemon.commandline.parser import full_parser
from daemon.commands.output import print_lines
from daemon.config import Settings
from daemon.exit_codes import OK

SHELLS: Final = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")
    parser.epilog = (
        "examples:\n"
        "    recalld completion bash > ~/.local/share/bash-completion/completions/recalld\n"
        "    recalld completion zsh > ~/.zfunc/_recalld\n"
        "    recalld completion fish > ~/.config/fish/completions/recalld.fish"
    )


def run(chosen: SimpleNamespace, _settings: Settings) -> int:
    print_lines(script(chosen.shell))
    return OK


def script(shell: str) -> list[str]:
    """The completion script of a shell."""
    words = command_words()
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](words)


class Words:
    """The words that can follow a command: verbs with their purpose, and options with theirs."""

    def __init__(self, about: str) -> None:
        self.about = about
        self.verbs: dict[str, str] = {}
        self.options: dict[str, str] = {}


def command_words() -> dict[str, Words]:
    """The words of every command, by name."""
    found: dict[str, Words] = {}
    for name, about, parser in subcommands(full_parser()):
        words = found[name] = Words(about)
        _collect(parser, words)
        for verb, purpose, inner in subcommands(parser):
            words.verbs[verb] = purpose
            _collect(inner, words)
    return found


def subcommands(
    parser: argparse.ArgumentParser,
) -> list[tuple[str, str, argparse.ArgumentParser]]:
    """The subcommands of a parser: name, purpose and parser."""
    found: list[tuple[str, str, argparse.ArgumentParser]] = []
    for action in parser._actions:
        if is_subcommands(action):
            shown = cast("Any", action)
            abouts = {choice.dest: choice.help or "" for choice in shown._choices_actions}
            found += [(name, abouts.get(name, ""), inner) for name, inner in shown.choices.items()]
    return found


def is_subcommands(action: argparse.Action) -> bool:
    """Whether an action holds the subcommands of a parser; argparse's class for it is private."""
    return hasattr(action, "_choices_actions")


def _collect(parser: argparse.ArgumentParser, words: Words) -> None:
    for action in parser._actions:
        if action.help == argparse.SUPPRESS:
            continue
        for option in action.option_strings:
            if option.startswith("--"):
                words.options.setdefault(option, action.help or "")


def _bash(commands: dict[str, Words]) -> list[str]:
    cases = [
        f"        {name}) words='{' '.join([*words.verbs, *words.options])}' ;;"
        for name, words in commands.items()
    ]
    return [
        "# Tab completion of recalld for bash; made by `recalld completion bash`.",
        "_recalld() {",
        '    local words current="${COMP_WORDS[COMP_CWORD]}"',
        '    if [ "$COMP_CWORD" -eq 1 ]; then',
        f"        words='{' '.join(commands)} --help --version'",
        '    else case "${COMP_WORDS[1]}" in',
        *cases,
        "    esac fi",
        '    COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "}",
        "complete -o default -F _recalld recalld",
    ]


def _zsh(commands: dict[str, Words]) -> list[str]:
    cases: list[str] = []
    for name, words in commands.items():
        entries = {**words.verbs, **words.options}
        shown = " ".join(f"'{word}:{_quoted(about)}'" for word, about in entries.items())
        cases.append(f"    {name}) choices=({shown}) ;;")
    return [
        "#compdef recalld",
        "# Tab completion of recalld for zsh; made by `recalld completion zsh`.",
        "local -a choices",
        "if (( CURRENT == 2 )); then",
        "    choices=(",
        *(f"        '{name}:{_quoted(words.about)}'" for name, words in commands.items()),
        "    )",
        "    _describe 'command' choices",
        "    return",
        "fi",
        "case $words[2] in",
        *cases,
        "esac",
        "_describe 'argument' choices",
        "_files",
    ]


def _fish(commands: dict[str, Words]) -> list[str]:
    lines = [
        "# Tab completion of recalld for fish; made by `recalld completion fish`.",
        "complete -c recalld -f -n __fish_use_subcommand -l version -d 'show the version'",
    ]
    for name, words in commands.items():
        lines.append(
            f"complete -c recalld -f -n __fish_use_subcommand -a {name} -d '{_quoted(words.about)}'"
        )
        seen = f"-n '__fish_seen_subcommand_from {name}'"
        lines += [
            f"complete -c recalld -f {seen} -a {verb} -d '{_quoted(about)}'"
            for verb, about in words.verbs.items()
        ]
        lines += [
            f"complete -c recalld {seen} -l {option[2:]} -d '{_quoted(about)}'"
            for option, about in words.options.items()
        ]
    return lines


def _quoted(text: str) -> str:
    """Text inside single quotes, without characters that a shell or zsh's lists would take."""
    return text.replace("'", "’").replace(":", ",").replace("\\", "").replace("%%", "%")
