//! The words that may begin a statement. Never reserves one of them.

use super::cursor::Cursor;
use crate::form::Form;

/// Words that begin statements, those that are written in two words glued together.
///
/// In fixed form the longest one that the text begins with is meant, since blanks say nothing there.
const KEYWORDS: &[&str] = &[
    "abstractinterface",
    "accept",
    "allocatable",
    "allocate",
    "assign",
    "associate",
    "asynchronous",
    "attributes",
    "automatic",
    "backspace",
    "bind",
    "block",
    "blockdata",
    "byte",
    "call",
    "case",
    "casedefault",
    "changeteam",
    "character",
    "class",
    "classdefault",
    "classis",
    "close",
    "codimension",
    "common",
    "complex",
    "contains",
    "contiguous",
    "continue",
    "critical",
    "cycle",
    "data",
    "deallocate",
    "decode",
    "define",
    "dimension",
    "do",
    "doconcurrent",
    "doublecomplex",
    "doubleprecision",
    "dowhile",
    "elemental",
    "else",
    "elseif",
    "elsewhere",
    "encode",
    "end",
    "endassociate",
    "endblock",
    "endblockdata",
    "endcritical",
    "enddo",
    "endenum",
    "endfile",
    "endforall",
    "endfunction",
    "endif",
    "endinterface",
    "endmap",
    "endmodule",
    "endprocedure",
    "endprogram",
    "endselect",
    "endstructure",
    "endsubmodule",
    "endsubroutine",
    "endteam",
    "endtype",
    "endunion",
    "endwhere",
    "entry",
    "enum",
    "enumerator",
    "equivalence",
    "errorstop",
    "eventpost",
    "eventwait",
    "exit",
    "external",
    "failimage",
    "final",
    "flush",
    "forall",
    "format",
    "formteam",
    "function",
    "generic",
    "goto",
    "if",
    "implicit",
    "import",
    "impure",
    "include",
    "inquire",
    "integer",
    "intent",
    "interface",
    "intrinsic",
    "lock",
    "logical",
    "map",
    "module",
    "moduleprocedure",
    "namelist",
    "nonrecursive",
    "notifywait",
    "nullify",
    "open",
    "optional",
    "options",
    "parameter",
    "pause",
    "pointer",
    "print",
    "private",
    "procedure",
    "program",
    "protected",
    "public",
    "pure",
    "rank",
    "rankdefault",
    "read",
    "real",
    "record",
    "recursive",
    "return",
    "rewind",
    "save",
    "select",
    "selectcase",
    "selectrank",
    "selecttype",
    "sequence",
    "simple",
    "static",
    "stop",
    "structure",
    "submodule",
    "subroutine",
    "syncall",
    "syncimages",
    "syncmemory",
    "syncteam",
    "target",
    "type",
    "typeis",
    "union",
    "unlock",
    "use",
    "value",
    "volatile",
    "wait",
    "where",
    "write",
];

/// First words of keywords that may be written in two words.
const FIRST_WORDS: &[&str] = &[
    "abstract", "block", "case", "change", "class", "do", "double", "else", "end", "error", "event", "fail",
    "form", "go", "module", "notify", "rank", "select", "sync", "type",
];

/// Passes the keyword that the statement begins with.
pub(super) fn take(c: &mut Cursor<'_>) -> Option<&'static str> {
    let word = c.word(0);
    if word.is_empty() {
        return None;
    }
    match c.form {
        Form::Fixed => {
            let keyword = longest_prefix(word)?;
            c.eat_prefix(keyword.len());
            Some(keyword)
        }
        Form::Free => {
            let next = c.word(1);
            if !next.is_empty() && FIRST_WORDS.contains(&word) {
                let glued = KEYWORDS.iter().find(|keyword| {
                    keyword.len() == word.len() + next.len()
                        && keyword.starts_with(word)
                        && keyword.ends_with(next)
                });
                if let Some(keyword) = glued {
                    c.bump();
                    c.bump();
                    return Some(keyword);
                }
            }
            let i = KEYWORDS.binary_search(&word).ok()?;
            c.bump();
            Some(KEYWORDS[i])
        }
    }
}

fn longest_prefix(word: &str) -> Option<&'static str> {
    // All keywords that are prefixes of the word sort before it, and the longest comes last among them.
    let end = KEYWORDS.partition_point(|&keyword| keyword <= word);
    let first = word.as_bytes()[0];
    KEYWORDS[..end]
        .iter()
        .rev()
        .take_while(|keyword| keyword.as_bytes()[0] == first)
        .find(|&&keyword| word.starts_with(keyword))
        .copied()
}

#[cfg(test)]
mod test {
    use super::{KEYWORDS, longest_prefix};

    #[test]
    fn the_list_is_sorted() {
        assert!(KEYWORDS.is_sorted());
    }

    #[test]
    fn the_longest_keyword_wins() {
        assert_eq!(longest_prefix("elseif"), Some("elseif"));
        assert_eq!(longest_prefix("doubleprecisionx"), Some("doubleprecision"));
        assert_eq!(longest_prefix("do10i"), Some("do"));
        assert_eq!(longest_prefix("xyz"), None);
    }
}
