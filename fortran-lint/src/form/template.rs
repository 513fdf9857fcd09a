//! Lines and pieces of fypp, the preprocessor of templates: `#:if`, `${name}$`. Never evaluates one.

use super::DirectiveKind;

/// What stands for the text of a `${…}$`. A part of a name with what stands beside it, otherwise a name.
const PLACEHOLDER: &[u8] = b"fypp";

/// Longest piece of a template inside a statement. Without an end it is looked for anew at each beginning.
const INLINE_BYTES_MAX: usize = 1024;

/// What a line of a template does; `None` for a line of Fortran.
pub(super) fn line(bytes: &[u8]) -> Option<DirectiveKind> {
    let text = bytes.trim_ascii_start();
    match text {
        [b'#', b'!', ..] | [b'$' | b'@', b':', ..] => Some(DirectiveKind::Other),
        [b'#', b':', rest @ ..] => {
            let rest = rest.trim_ascii_start();
            let length = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
            Some(match &rest[..length] {
                b"if" => DirectiveKind::If,
                b"elif" | b"else" => DirectiveKind::Else,
                b"endif" => DirectiveKind::EndIf,
                _ => DirectiveKind::Other,
            })
        }
        _ => None,
    }
}

/// The length of a `${…}$` or `#{…}#` at the beginning of a text, and what stands for it.
pub(super) fn inline(text: &[u8]) -> Option<(usize, &'static [u8])> {
    let (&mark, behind) = text.split_first()?;
    let behind = &behind[..behind.len().min(INLINE_BYTES_MAX)];
    let ends = |&at: &usize| behind.get(at + 1) == Some(&mark);
    let length = memchr::memchr_iter(b'}', behind).find(ends)? + 3;
    Some((length, if mark == b'$' { PLACEHOLDER } else { b"" }))
}
