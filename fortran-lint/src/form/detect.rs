//! Chooses the source form of a file. Never trusts the name alone.

/// The two source forms.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// Columns matter, blanks do not.
    Fixed,
    /// Blanks matter, columns do not.
    Free,
}

/// Lines looked at before the form is decided.
const LINES_MAX: usize = 2_000;

/// Points from which on the rest of a text cannot change what it looks like.
const SCORE_MAX: i32 = 120;

/// Points by which the text must outweigh the name.
const NAME_WEIGHT: i32 = 3;

/// Points by which an included text must outweigh the form of its includer.
const INCLUDER_WEIGHT: i32 = 7;

/// The form of a text: what its lines look like decides, the file's name breaks ties.
pub fn detect(path: &str, bytes: &[u8]) -> Form {
    let score = name_score(path) + text_score(bytes);
    if score < 0 { Form::Fixed } else { Form::Free }
}

/// The form of an included text with that score: that of the file which includes it, unless its lines contradict clearly.
pub fn form_beside(score: i32, includer: Form) -> Form {
    match includer {
        Form::Free if score < -INCLUDER_WEIGHT => Form::Fixed,
        Form::Fixed if score > INCLUDER_WEIGHT => Form::Free,
        _ => includer,
    }
}

/// What the lines of a text say about its form: positive means free.
pub fn text_score(bytes: &[u8]) -> i32 {
    let mut score = 0;
    let mut continues = false;
    for line in bytes.split(|&byte| byte == b'\n').take(LINES_MAX) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let (points, ends_in_mark) = line_score(line, continues);
        score += points;
        if score.abs() >= SCORE_MAX {
            break;
        }
        if let Some(mark) = ends_in_mark {
            continues = mark;
        }
    }
    score
}

/// Positive means free.
fn name_score(path: &str) -> i32 {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    match extension.as_str() {
        "f" | "for" | "ftn" | "f77" | "fpp" | "inc" | "h" | "fh" => -NAME_WEIGHT,
        _ => NAME_WEIGHT,
    }
}

/// Points of one line, and whether it ends in a continuation mark (`None` for lines that say nothing about that).
fn line_score(line: &[u8], continues: bool) -> (i32, Option<bool>) {
    let trimmed = line.trim_ascii();
    let Some(&first) = line.first() else { return (0, None) };
    if trimmed.is_empty() || trimmed[0] == b'!' || trimmed[0] == b'#' {
        return (0, None);
    }
    // Comment letters of fixed form; in free form a name would follow.
    if matches!(first, b'*') {
        return (-4, None);
    }
    if matches!(first, b'c' | b'C') && !continues {
        let second = line.get(1).copied().unwrap_or(b' ');
        if !(second.is_ascii_alphanumeric() || second == b'_' || second == b'(') || second == first {
            return (-4, None);
        }
        let word_length = line.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let word = line[..word_length].to_ascii_lowercase();
        let is_keyword = matches!(
            word.as_slice(),
            b"call"
                | b"character"
                | b"case"
                | b"close"
                | b"common"
                | b"complex"
                | b"contains"
                | b"continue"
                | b"cycle"
                | b"class"
        );
        if !is_keyword
            && line.get(word_length).is_none_or(|&byte| byte != b'=' && byte != b'(' && byte != b'%')
        {
            let next = line[word_length..].trim_ascii_start().first();
            if next != Some(&b'=') {
                return (-1, None);
            }
        }
    }
    let mark = ends_in_mark(line);
    let mut points = 0;
    let column_6 = line.get(5).copied();
    let has_blank_margin = line.len() > 5 && line[..5].iter().all(|&byte| byte == b' ');
    if has_blank_margin
        && column_6.is_some_and(|byte| byte != b' ' && byte != b'0' && byte != b'\t')
        && !continues
    {
        // A statement indented by five blanks starts with a letter; other marks only continue.
        let is_mark = column_6.is_some_and(|byte| !byte.is_ascii_alphabetic() && byte != b'_');
        points -= if is_mark { 4 } else { 0 };
    }
    let text_in_margin = line.iter().take(5).any(|&byte| byte.is_ascii_alphabetic()) && line[0] != b'\t';
    let label_only = line.iter().take(5).all(|&byte| byte == b' ' || byte.is_ascii_digit());
    if text_in_margin && !matches!(first, b'c' | b'C' | b'd' | b'D') && !label_only {
        points += 2;
    }
    // Within 72 columns a trailing `&` means nothing in fixed form.
    if mark && line.len() <= 72 && column_6 != Some(b'&') {
        points += 4;
    }
    (points, Some(mark))
}

/// Whether the statement text ends in `&`.
fn ends_in_mark(line: &[u8]) -> bool {
    let mut quote = None;
    let mut last = 0u8;
    for &byte in line {
        match quote {
            Some(mark) if byte == mark => quote = None,
            Some(_) => {}
            None if byte == b'\'' || byte == b'"' => quote = Some(byte),
            None if byte == b'!' => break,
            None => {}
        }
        if byte != b' ' && byte != b'\t' {
            last = byte;
        }
    }
    last == b'&'
}
