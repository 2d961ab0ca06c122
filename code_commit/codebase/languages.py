"""The languages that patterns read: which comments and long strings to skip, and how a definition begins."""

import functools
import re

_STRING = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"  # of one line; a longer one is blanked as comments are
_BLOCK, _SLASHES = r"/\*(?s:.*?)(?:\*/|\Z)", r"//.*"
_HASH, _DASHES = r"(?<![^\s;])#.*", r"--(?![!#$%&*+./<=>?@\\^~:]).*"
_TRIPLE = r"\"{3}(?s:.*?)(?:\"{3}|\Z)|'{3}(?s:.*?)(?:'{3}|\Z)"
_SCRIPTED = (  # long strings, the documentation of Perl and Ruby, here-documents, comments of PowerShell
    rf"{_TRIPLE}|^=(?:begin|pod|head\d|over|item|for|encoding)\b(?s:.*?)(?:^=(?:end|cut)\b.*|\Z)|^__END__(?s:.*)"
    r"|<<[~-]?([\"']?)(?P<heredoc>[A-Z_]{2,})\1|<#"
)
CLOSERS = {"(*": r"\*\)", "{-": r"-\}", "/-": "-/", "<#": "#>", "#=": "=#", "#|": r"\|#", "{": r"\}"}
"""The end of a comment of which the patterns have the beginning alone."""
TAGGED_CLOSERS = {"heredoc": r"^[ \t]*{}\b", "level": r"\]{}\]", "dollars": r"\${}\$", "bars": r"\|{}\}}"}
"""The end of a string whose beginning has a group of this name, {} being what stands in it."""
_SKIPPED = {
    "c": rf"{_TRIPLE}|{_BLOCK}|{_SLASHES}|`(?:\\.|[^`\\])*`|{_STRING}",
    "hash": rf"{_SCRIPTED}|{_HASH}|{_STRING}",
    "julia": rf"{_TRIPLE}|#=|{_HASH}|{_STRING}",
    "terraform": rf"{_BLOCK}|{_SLASHES}|{_HASH}|<<[~-]?(?P<heredoc>\w+)\n|{_STRING}",
    "haskell": rf"\{{-|{_DASHES}|{_STRING}",
    "lua": rf"(?:--)?\[(?P<level>=*)\[|--.*|{_STRING}",
    "sql": rf"{_BLOCK}|--.*|\$(?P<dollars>\w*)\$|'(?:''|[^'])*'",
    "ml": rf"'(?:\\.[^'\n]{{0,3}}|[^'\\\n])'|\{{(?P<bars>\w*)\||\(\*(?!\))|{_SLASHES}|{_TRIPLE}"
    r"|@\"(?:\"\"|[^\"])*\"|\"(?:\\(?s:.)|[^\"\\])*\"",
    "lisp": r"\"(?:\\(?s:.)|[^\"\\])*\"|#\||;.*",
    "erlang": r"\"(?:\\(?s:.)|[^\"\\])*\"|(?<!\$)%.*",
    "fortran": r"!.*",
    "basic": r"\"[^\"\n]*\"|'.*",
    "any": rf"{_TRIPLE}|{_BLOCK}|\(\*(?!\))|\{{-|/-|<#",
    "pascal": rf"\{{|\(\*|{_SLASHES}|{_STRING}",
}  # patterns of comments and strings, by what languages share

_PARTS = {  # of rows, in a notation of theirs: a space is `[ \t]+`, and ` *` is `[ \t]*`
    "NO_CALL": r"""
        (?!(?:return|else|throw|new|await|yield|case|if|for|while|switch|catch|typedef|delete|goto|using|assert|do
        |try)\b)
    """,
    "TYPED": r"""
        <NO_CALL>[A-Za-z_][\w:.,<>\[\]?*&\x20\t]*[\x20\t*&>\]]
    """,
    "WORDS": r"""
        (?:import|from|use|using|require|include|package|open|alias)\b[\x20(\"'<{].*|(?:(?:abstract|actual|annotation
        |async|const|data|default|expect|export|external|fileprivate|final|impure|inline|inner|internal|local
        |mutating|noncomputed|nonisolated|open|operator|override|partial|private|protected|pub|public|pub\([^)]*\)
        |pure|readonly|sealed|static|suspend|tailrec|unsafe|value|virtual) )*(?:class|def|enum(?: (?:class|struct))?
        |extension|fn|fun|func|function|impl|interface|macro|message|module|namespace|object|proc|procedure|protocol|record
        |rpc|service|struct|sub|subtype|trait|type|typedef|union)\b (?=[\w(*<])(?:\([^)\n]*\) *|<[^>\n]*> *)?([\w.:]*).*
    """,
    "SAID": r"""
        (?!(?:and|elif|elsif|extern|in|not|of|or|unless|until|when|with)\b)<NO_CALL>@?\w[\w.]*(?: *\( *| )(?:
        \"((?:\\.|[^\"\\\n])+)\"|'((?:\\.|[^'\\\n])+)')(?:.*[\x20\t)])?(?:\{(?: *(?:param)?[|(].*)?|do(?: *\|.*\|)?
        |begin|:|=>|@\(|function *\(.*\)) *
    """,
    "MEMBER": r"""
        <WORDS>|(?:(?:public|private|protected|internal|static|final|abstract|override|virtual|async
        |synchronized) )+(?:[\w.,<>\[\]?\x20]+[\x20\t])?(\w+) *\(.*
        |<TYPED>(\w+)\([^()\n]*\) *(?:throws[\x20\t][\w.,\x20]+)?(?:\{.*\}|[{;])? *
    """,
}
_ROWS = {  # by the suffixes of languages
    "ex exs": (
        "hash",
        r"""
            (?:use|import|alias|require) [A-Z{_].*|(?:def(?:macro|delegate|guard|n)?p?|def(?:module|protocol|impl
            |record))\b[\x20\t(]+([\w.]+[?!]?).*|(?:defstruct|defexception)\b.*|@(?:callback|macrocallback|type
            |opaque) (\w+[?!]?).*|(?:test|describe|schema|property) \"(.*?)\".*
        """,
    ),
    "erl hrl": (
        "erlang",
        r"""
            -(?:module|behaviou?r|record|define|type|opaque|callback|include\w*|import)\b[\x20\t(]*\"?(\w*).*
            |(?<![^\n])([a-z]\w*)\(.*
        """,
    ),
    "dart": (
        "c",
        r"""
            <SAID>|(?:import|export|part|library)\b ['\"\w].*|(?:(?:abstract|base|final|interface|sealed|mixin) )*
            (?:class|mixin|enum|typedef|extension(?: type)?) (\w+).*|(?<![^\n])(?:\x20\x20|\t)?(?:(?:
            (?:const |factory |external )*([A-Z][\w.]*)\(.*|<TYPED>(?:(?:get|set|operator) )?(\w+
            |[=<>+*/%\[\]-]+)(?:<[^>\n]*>)?(?:\(.*| *(?:=>|\{|async).*)|(?:get|set) (\w+).*
            |(\w+)\([^()\n]*\) *(?:async\*? *|sync\* *)?(?:=>|\{).*|(?:static|late|final|const|covariant|var
            |<NO_CALL>[\w<>?,\x20]+)[\x20\t][\w<>?,\x20]*?(\w+);))
        """,
    ),
    "hs hsc purs elm": (
        "haskell",
        r"""
            (?:import|module|port\x20module) [A-Zq].*|(?:data|newtype|type(?: (?:alias|family))?|class|instance
            |pattern) (?:.*=> *)?([\w'.]+).*|(?<![^\n])\x20{0,4}(?:port )?([A-Za-z_][\w']*
            |\([^\w\s]+\))(?: *, *[\w']+)* *::?(?![:=]).*|foreign\x20import.*
        """,
    ),
    "ml mli fs fsi fsx re rei": (
        "ml",
        r"""
            (?:open|import|namespace|include) [A-Z].*|(?:let|and(?! type\b))(?: (?:rec|inline|private
            |mutable))* (\w['\w]*|\([^\w\s]+\))(?!.*[\x20\t]in *$).*|(?:val|external|exception|method
            |module(?: (?:type|rec))?|class|type(?: (?:nonrec|rec))?|(?:static )?(?:member|abstract|override
            |default)(?: (?:val|inline|private|member))*) (?:'\w+ |\([^)\n]*\) )?(?:\w+\.)?(\w['\w]*).*
        """,
    ),
    "lua tl": (
        "lua",
        r"""
            <SAID>|(?:local |global )?(?:function|record|enum|interface) ([\w.:]+).*
            |(?:return *\{ *|local )?([\w.]+) *= *function\b.*
            |(?<![^\n])(?:local )?([\w.]+) *= *(?:require\b|\{|setmetatable|\w+[:.](?:extend|new|class)\b).*
        """,
    ),
    "jl": (
        "julia",
        r"""
            <SAID>|(?:using|import|export|include)\b[\x20\t(].*|(?:@\w+ )*(?:function|macro|module|baremodule
            |(?:mutable )?struct|(?:abstract|primitive) type|const) ([\w.!]+).*
            |(?<![^\n])([\w.!]+)\([^=\n]*\)(?: *where.*?|::\w+)? *=(?!=).*
        """,
    ),
    "nim nims": (
        "hash",
        r"""
            <SAID>|(?:import|from|include|export) \w.*|(?:proc|func|method|iterator|template|macro
            |converter) `?([\w=+*/<>-]+).*|(?:type )?([A-Z]\w*)\*?(?: *\{\..*?\.\})?(?:\[[^]\n]*\])? *= *(?:object
            |enum|ref|ptr|distinct|tuple|concept|set|seq|proc)\b.*|(?:const|let|var) (\w+).*
        """,
    ),
    "pl pm t raku": (
        "hash",
        r"""
            <SAID>|(?:use|require|no) [\w:.]+.*|(?:package|sub|method|class|role|fun) ([\w:]+).*|has ['\"]?\+?(\w+).*
            |(?:use\x20constant|our) .*
        """,
    ),
    "r": (
        "hash",
        r"""
            (?:library|require|source)\(.*|[`\"]?([\w.<-]*\w)[`\"]? *(?:<<?-|=) *(?:function\b|\\\(|R6\w*\(
            |setRefClass|new\.env|structure\().*|set(?:Class|Generic|Method|Validity|RefClass)\( *['\"]([\w.]+).*
            |test_that\( *['\"](.*?)['\"].*|(?<![^\n])([A-Z][\w.]*) *<-.*
        """,
    ),
    "vb vbs bas cls": (
        "basic",
        r"""
            (?i:Imports[\x20\t].*|(?:(?:Public|Private|Protected|Friend|Shared|Overrides|Overridable|MustInherit
            |MustOverride|NotInheritable|Partial|ReadOnly|Default|Async|Shadows|Const) )*(?:Class|Module|Structure
            |Interface|Enum|Namespace|Sub|Function|Property(?: [GSL]et)?|Event|Delegate (?:Sub|Function)|Type
            |Operator) (\w+).*)
        """,
    ),
    "zig": (
        "c",
        r"""
            (?:(?:pub|export|extern|inline|noinline) (?:\"\w+\" )?)*fn (\w+).*|(?:pub )(?:const|var) (\w+).*|(?:const
            |var) (\w+) *= *(?:@import|@cImport|(?:packed\x20|extern\x20)?(?:struct|enum|union|error|opaque)\b).*
            |(?<![^\n])(?:const|var|threadlocal\x20var) (\w+).*|test \"(.*?)\".*
        """,
    ),
    "proto thrift capnp fbs prisma": (
        "c",
        r"""
            (?:message|enum|service|rpc|oneof|extend|struct|union|exception|table|typedef|root_type|model|view) (\w+).*
            |(?:import|include|package|namespace|option)\b.*
        """,
    ),
    "groovy gradle jenkinsfile": (
        "c",
        r"""
            <SAID>|<MEMBER>|(?:task|def) (?:(\w+).*|\"(.*?)\" *\(.*|'(.*?)' *\(.*)|tasks\.\w+\( *['\"](\w+).*
        """,
    ),
    "clj cljs cljc el lisp lsp scm rkt ss fnl": (
        "lisp",
        r"""
            \((?:[\w-]+/)?(?:def[\w*?!:-]*|ns|define[\w*/-]*|cl-def\w+|module|require|import
            |use-modules) \^?\(*([^\s()]*).*
        """,
    ),
    "sql ddl pgsql psql": (
        "sql",
        r"""
            (?i:create (?:or (?:replace|alter) )?(?:(?:global|local|temp|temporary|unique|unlogged|materialized
            |recursive|clustered|external|virtual|constraint|definer *= *\S+) )*(?:aggregate|database|domain|event
            |extension|function|index|macro|materialized view|operator|package(?: body)?|policy|procedure|proc
            |publication|role|rule|schema|sequence|server|synonym|table|trigger|type|user
            |view) (?:concurrently )?(?:if not exists )?([^\s(;,]+).*
            |alter table (?:only |if exists )*([^\s(;,]+).*)
        """,
    ),
    "tf tfvars hcl nomad": (
        "terraform",
        r"""
            (?<![^\n])\w+(?: \"([\w./-]+)\"(?: \"([\w./-]+)\")?)? *\{.*
        """,
    ),
    "graphql graphqls gql": (
        "hash",
        r"""
            (?:extend )?(?:type|interface|enum|input|union|scalar|directive|query|mutation|subscription|fragment
            |schema)\b *@?(\w*).*|(?<=[\x20\t])(\w+)(?:\([^)\n]*\)?)? *: *\[*[A-Z]\w*.*
        """,
    ),
    "ps1 psm1 psd1": (
        "hash",
        r"""
            <SAID>|(?i:(?:function|filter|class|enum|workflow|configuration) ([\w:-]+).*
            |(?:using|import-module)[\x20\t].*)
            |(?:(?:static|hidden) )*\[[\w\[\].]+\] *(?:static )?(\w+) *\(.*\{.*
        """,
    ),
    "sol": (
        "c",
        r"""
            (?:import|pragma|using)\b.*|(?:abstract )?(?:contract|library|interface|function|modifier|event|error
            |struct|enum|type) (\w+).*|(?:constructor|receive|fallback) *\(.*|(?:mapping\(.*\)
            |\w+(?:\[\])?) (?:public|constant|immutable)[\x20\t](?:\w+ )*?(\w+) *[=;].*
        """,
    ),
    "m mm": (
        "c",
        r"""
            [#@](?:import|include).*|@(?:interface|implementation|protocol|class) (\w+).*|@property\b.*?(\w+);.*
            |[-+] *\([^)\n]*\) *(\w+).*|(?:typedef|struct|enum)[\x20\t].*|(?<![^\n])<TYPED>(\w+) *\(.*
        """,
    ),
    "f for f90 f95 f03 f08 f18 fpp fypp": (
        "fortran",
        r"""
            (?i:use \w.*|(?!end)(?:(?:module(?= \w+ \w)|pure|elemental|recursive|impure|integer|real|logical|complex
            |character|double\x20precision|type)(?:\([^)\n]*\))? )*(?:(?:subroutine|function|module(?: procedure)?
            |program|interface|type(?! *\())\b|submodule *\([^)\n]*\))[\x20\t,:]*(?:[\w(),\x20]+:: *)?([\w${}]+).*)
        """,
    ),
    "pas pp dpr lpr": (
        "pascal",
        r"""
            (?i:(?:class )?(?:procedure|function|constructor|destructor|operator|unit|program|library
            |property) ([\w.]+).*|(\w+) *= *(?:packed )?(?:class|record|interface|object)\b.*|uses[\x20\t].*)
        """,
    ),
    "cmake": (
        "hash",
        r"""
            (?i:(?:function|macro|project|add_library|add_executable|add_custom_target|add_test|option|include
            |find_package) *\( *([\w:.${}-]+).*)
        """,
    ),
    "v sv svh vhd vhdl": (
        "c",
        r"""
            (?:(?:virtual|static|automatic|extern|pure|local|protected) )*(?:module|interface|package|class|program
            |task|function|entity|architecture|component|process) (?:(?:automatic|void|int|bit|logic) )*(\w+).*
        """,
    ),
    "gd": (
        "hash",
        r"""
            (?:class_name|extends|signal) (\w+).*|(?:@\w+(?:\([^)\n]*\))? )*(?:static )?(?:func|class|enum
            |const) (\w+).*|(?<![^\n])(?:@\w+(?:\([^)\n]*\))? )*var (\w+).*
        """,
    ),
    "cr": (
        "hash",
        r"""
            <SAID>|<WORDS>|(?:private |protected )?(?:abstract )?(?:def|lib|annotation|alias|macro) ([\w.?!]+).*
        """,
    ),
    "* d hx odin gleam cue swift-interface as glsl hlsl wgsl metal groov": (
        "any",
        r"""
            <WORDS>|([\w.]+) *[:=].*[=-]>.*|(?<![^\n])(?::([\w-]+)|([\w$][\w.$-]*):)[\x20\r]*
        """,
    ),
    "nix": (
        "terraform",
        r"""
            (?<![^\n])\x20{0,4}([\w.-]+) *= *(?:\{|\w+:|rec|mk\w+).*
        """,
    ),
    "tcl awk vim fish": (
        "hash",
        r"""
            <WORDS>|function!? ([\w:#.-]+).*
        """,
    ),
    "py pyi": ("hash", "<WORDS>"),
    "pyx pxd": (
        "hash",
        r"""
            <WORDS>|cp?def (?:(?:class|struct|enum|union|cppclass|packed|public|inline|api
            |extern) )*(?:[\w.*&\[\]<>:,]+ )?\**(\w+) *[(:].*|cimport .*
        """,
    ),
    "mk mak makefile gnumakefile just justfile": (
        "hash",
        r"""
            (?<![^\n])(?!\.[A-Z]|\w+ *[:+?!]*=)@?([\w./$(){}%-]+)(?: [\w./$(){}%='\"*+-]+)* *&?::?(?![:=]).*
            |define ([\w.-]+).*|include .*
        """,
    ),
    "dockerfile containerfile docker": (
        "hash",
        r"""
            (?i:FROM .*?\S(?: AS ([\w.-]+))?)
        """,
    ),
    "css scss less pcss": (
        "c",
        r"""
            @(?:mixin|function|keyframes|layer|utility|use|import)\b *([\w-]*).*
            |(?<![^\n])[\w*:]*[.\#]([\w-]+).*[{},]
        """,
    ),
    "rb rake": (
        "hash",
        r"""
            <WORDS>|(?:[A-Z]\w*\.)?(?:describe|context|feature|it|scenario)[\x20\t(]+(.*?)(?:[\x20\t]do)?
        """,
    ),
    "sh bash zsh ksh": ("hash", r"<WORDS>|([\w:.-]+) *\(\) *\{?.*"),
    "rs": (
        "c",
        r"""
            <WORDS>|(?:pub(?:\([^)\n]*\))? )?(?:static|const) (?:mut |ref )?([A-Z_]\w*) *:.*|macro_rules! *(\w+).*
        """,
    ),
    "kt kts": (
        "c",
        r"""
            <WORDS>|(?:(?:\w+) )*(?:companion object|typealias (\w+)|constructor *\(
            |const val (\w+)).*|(?:[\w@]+ )*(?:fun|class|object|interface) (?:<[^>\n]*> *)?([\w.]+).*
        """,
    ),
    "swift": (
        "c",
        r"""
            <WORDS>|(?:@?\w+ )*(?:init[?!]?|subscript) *[(<].*|(?:@?\w+ )*(?:func|actor|class|struct|enum|protocol
            |typealias|associatedtype|extension) (\w+).*
        """,
    ),
    "scala sc": (
        "c",
        r"""
            <WORDS>|(?:\w+(?:\[\w+\])? )*(?:def|class|trait|object|enum|given) (\w+).*
        """,
    ),
    "go": (
        "c",
        r"""
            <WORDS>|(?<![^\n])(?:var|const) (\w+).*
        """,
    ),
    "java cs php": ("c", "<MEMBER>"),
    "js jsx mjs cjs ts tsx mts cts": (
        "c",
        r"""
            <WORDS>|export (?:const|let|var) (\w+).*|(?:const|let|var) (\w+) *=.*(?:=>|\bfunction\b|require\().*
            |(?:(?:async|static|get|set|public|private|protected
            |readonly) )*<NO_CALL>(\w+)\([^()\n]*\)(?: *:.*?)? *\{
        """,
    ),
    "c h cc cpp cxx hh hpp hxx cu cuh ino ipp tpp inl": (
        "c",
        r"""
            \# *include\b.*|\# *define (\w+)(?:\(| \S).*
            |(?:template *<.*> *)?(?:typedef )?(?:class|struct|enum(?: (?:class|struct))?|union
            |namespace) (?:[A-Z][A-Z0-9_]*(?:\(.*?\))? )?([\w:]+)(?=[^;=*&(]*(?:\{|$)).*
            |<TYPED>(~?\w+) *\([^;\n]*\)[^;\n]*\{.*|(~?[A-Z]\w*)\([^;\n]*\)[^;\n]*\{.*
            |(?<![^\n])<TYPED>([\w:~]+) *\(.*
        """,
    ),
}
_ROW_OF = {suffix: row for suffixes, row in _ROWS.items() for suffix in suffixes.split()}
ANY = "*"
"""In place of the suffix of a language that has no row: its lines are read by their shape, too."""


def has_own_row(suffix: str) -> bool:
    return _ROW_OF[suffix] is not _ROW_OF[ANY]


def is_language(suffix: str) -> bool:
    """Tell whether a file with this suffix is code whose definitions patterns find."""
    return suffix in _ROW_OF


@functools.cache
def compiled(suffix: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what a language skips, and a line that begins a definition; the first group that matched is its name."""
    kind, row = _ROW_OF[suffix]
    for name in reversed(_PARTS):
        row = row.replace(f"<{name}>", _PARTS[name])
    head = re.sub(r" (\*?)", lambda match: rf"[ \t]{match[1] or '+'}", "".join(map(str.strip, row.splitlines())))
    return re.compile(_SKIPPED[kind], re.MULTILINE), re.compile(rf"^(?!.{{1000}})[ \t]*(?:{head})$", re.MULTILINE)
