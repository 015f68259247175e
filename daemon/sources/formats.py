"""File formats by name: which parser reads a file, and the content type of its document."""

from typing import Final, NamedTuple


class Format(NamedTuple):
    """The parser of a file, and the content type that decides how its text is cut into chunks.

    `is_numbered` tells that the text has the lines of the file, so that a passage has line numbers.
    """

    parser: str
    content_type: str
    is_numbered: bool = True


TEXT: Final = Format("text", "text/plain")
MARKDOWN: Final = Format("text", "text/markdown")
HTML: Final = Format("html", "text/html", is_numbered=False)

_CODE: Final = {
    "c": ("c", "h"),
    "c++": ("cc", "cpp", "cxx", "hh", "hpp", "hxx"),
    "csharp": ("cs",),
    "go": ("go",),
    "java": ("java",),
    "javascript": ("js", "jsx", "mjs", "cjs"),
    "kotlin": ("kt", "kts"),
    "lua": ("lua",),
    "php": ("php",),
    "python": ("py", "pyi"),
    "ruby": ("rb",),
    "rust": ("rs",),
    "scala": ("scala",),
    "shellscript": ("sh", "bash", "zsh"),
    "sql": ("sql",),
    "swift": ("swift",),
    "typescript": ("ts", "tsx", "mts"),
    "zig": ("zig",),
}

_BY_EXTENSION: Final[dict[str, Format]] = {
    **dict.fromkeys(("md", "markdown", "mdx", "mdown"), MARKDOWN),
    **dict.fromkeys(("txt", "text", "log", "org", "adoc", "asciidoc", "tex"), TEXT),
    "rst": Format("text", "text/x-rst"),
    **dict.fromkeys(("html", "htm", "xhtml"), HTML),
    **{
        extension: Format("text", f"text/x-{language}")
        for language, extensions in _CODE.items()
        for extension in extensions
    },
    "json": Format("text", "application/json"),
    **dict.fromkeys(("yaml", "yml"), Format("text", "application/yaml")),
    "toml": Format("text", "application/toml"),
    **dict.fromkeys(("ini", "cfg", "conf", "properties"), Format("text", "text/x-config")),
    **dict.fromkeys(("csv", "tsv"), Format("text", "text/csv")),
    "pdf": Format("pdf", "application/pdf", is_numbered=False),
    "docx": Format("docx", "application/vnd.docx", is_numbered=False),
    "pptx": Format("pptx", "application/vnd.pptx", is_numbered=False),
    "xlsx": Format("xlsx", "application/vnd.xlsx", is_numbered=False),
    "ipynb": Format("notebook", "application/x-ipynb+json", is_numbered=False),
}
_BY_NAME: Final = {
    "readme": MARKDOWN,
    "license": TEXT,
    "changelog": MARKDOWN,
    "makefile": Format("text", "text/x-config"),
    "dockerfile": Format("text", "text/x-config"),
}


def format_of(path: str) -> Format | None:
    """The format of a file by its name; None if the name tells nothing."""
    name = path.rpartition("/")[2].lower()
    stem, dot, extension = name.rpartition(".")
    if dot and stem:
        return _BY_EXTENSION.get(extension)
    return _BY_NAME.get(name)
