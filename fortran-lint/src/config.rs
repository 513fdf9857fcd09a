//! `fortran-lint.toml`, from its text. Never looks for the file: the program in `bin` does.

use rma_source::{Diagnostic, Span};
use serde::Deserialize;
use toml::Spanned;

use crate::finding::Level;
use crate::form::Form;
use crate::options::{BINDINGS, FORMS, LEVELS, Options, STANDARDS};
use crate::rules::{RULES, Role};

/// What a configuration file is called.
pub const FILE_NAME: &str = "fortran-lint.toml";

/// A configuration file, understood.
#[derive(Clone, Default, Debug)]
pub struct Config {
    set: Vec<Setting>,
    /// Patterns of files that are not looked at in folders, relative to the folder of the configuration.
    pub exclude: Vec<String>,
    /// Patterns of files and their forms, relative to that folder; the first match counts.
    pub forms: Vec<(String, Form)>,
    /// Folders in which included files are looked for, relative to that folder.
    pub include: Vec<String>,
    /// The baseline, relative to that folder.
    pub baseline: Option<String>,
}

/// One setting that goes into [`Options`].
#[derive(Clone, Debug)]
enum Setting {
    Select(Vec<String>),
    Ignore(Vec<String>),
    MinLevel(Level),
    Standard(crate::options::Standard),
    Binding(crate::mpi::Binding),
    Dummies(Vec<String>),
    SyncRoutine(String),
    Macros(Vec<String>),
    Wrappers(crate::mpi::Wrappers),
}

/// The shape of the file.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Text {
    select: Vec<Spanned<String>>,
    ignore: Vec<Spanned<String>>,
    min_level: Option<Spanned<String>>,
    std: Option<Spanned<String>>,
    binding: Option<Spanned<String>>,
    dummy: Vec<Spanned<String>>,
    sync_routine: Option<Spanned<String>>,
    procedures: Vec<Spanned<String>>,
    exclude: Vec<String>,
    include: Vec<String>,
    define: Vec<Spanned<String>>,
    baseline: Option<String>,
    form: Vec<FormText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FormText {
    files: Vec<String>,
    form: Spanned<String>,
}

impl Config {
    /// Understands the text of a file.
    ///
    /// # Errors
    ///
    /// What is wrong, where, and what was probably meant.
    pub fn parse(text: &str) -> Result<Config, Box<Diagnostic>> {
        let raw: Text = toml::from_str(text).map_err(|error| refusal(text, &error))?;
        let mut set = Vec::new();
        if !raw.select.is_empty() {
            set.push(Setting::Select(codes(&raw.select, Codes::WithReasons)?));
        }
        if !raw.ignore.is_empty() {
            set.push(Setting::Ignore(codes(&raw.ignore, Codes::RulesOnly)?));
        }
        if let Some(word) = &raw.min_level {
            set.push(Setting::MinLevel(named(LEVELS, word, "level")?));
        }
        if let Some(word) = &raw.std {
            set.push(Setting::Standard(named(STANDARDS, word, "standard")?));
        }
        if let Some(word) = &raw.binding {
            set.push(Setting::Binding(named(BINDINGS, word, "binding")?));
        }
        if !raw.dummy.is_empty() {
            set.push(Setting::Dummies(checked(&raw.dummy, procedure)?));
        }
        if let Some(name) = &raw.sync_routine {
            set.extend(checked(std::slice::from_ref(name), procedure)?.pop().map(Setting::SyncRoutine));
        }
        if !raw.define.is_empty() {
            set.push(Setting::Macros(checked(&raw.define, definition)?));
        }
        let mut wrappers = crate::mpi::Wrappers::default();
        for row in &raw.procedures {
            wrappers.add(row.get_ref()).map_err(|why| wrong(span(row), why, None))?;
        }
        if !raw.procedures.is_empty() {
            set.push(Setting::Wrappers(wrappers));
        }
        let mut forms = Vec::new();
        for entry in raw.form {
            let form = named(FORMS, &entry.form, "source form")?;
            forms.extend(entry.files.into_iter().map(|pattern| (pattern, form)));
        }
        Ok(Config { set, exclude: raw.exclude, forms, include: raw.include, baseline: raw.baseline })
    }

    /// Writes the settings over those in `options`.
    pub fn apply(&self, options: &mut Options) {
        for setting in self.set.iter().cloned() {
            match setting {
                Setting::Select(codes) => options.select = codes,
                Setting::Ignore(codes) => options.ignore = codes,
                Setting::MinLevel(level) => options.min_level = level,
                Setting::Standard(standard) => options.standard = standard,
                Setting::Binding(binding) => options.binding = binding,
                Setting::Dummies(names) => options.dummies = names,
                Setting::SyncRoutine(name) => options.sync_routine = Some(name),
                Setting::Macros(macros) => options.reading.macros = macros,
                Setting::Wrappers(wrappers) => options.wrappers = wrappers,
            }
        }
    }
}

/// Which codes a list may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Codes {
    /// Those of rules and of reasons.
    WithReasons,
    /// A reason rides on a finding and cannot be left out alone.
    RulesOnly,
}

/// The code as it is listed.
///
/// # Errors
///
/// What is wrong with it, and what was probably meant.
pub fn code(text: &str, which: Codes) -> Result<&'static str, (String, Option<&'static str>)> {
    match crate::rules::find(text) {
        Some(rule) if which == Codes::RulesOnly && rule.role == Role::Reason => Err((
            format!(
                "{} is the reason why a remedy fails and has no findings of its own to ignore",
                rule.code
            ),
            None,
        )),
        Some(rule) => Ok(rule.code),
        None => Err((
            format!("no rule has the code `{text}`; `fortran-lint rules` lists them"),
            nearest(&text.to_ascii_uppercase(), RULES.iter().map(|rule| rule.code)),
        )),
    }
}

fn codes(list: &[Spanned<String>], which: Codes) -> Result<Vec<String>, Box<Diagnostic>> {
    list.iter()
        .map(|text| match code(text.get_ref(), which) {
            Ok(code) => Ok(code.to_string()),
            Err((why, meant)) => Err(wrong(span(text), why, meant)),
        })
        .collect()
}

/// The texts, when nothing is wrong with any of them.
fn checked(
    list: &[Spanned<String>],
    check: impl Fn(&str) -> Result<(), String>,
) -> Result<Vec<String>, Box<Diagnostic>> {
    let one = |text: &Spanned<String>| match check(text.get_ref()) {
        Ok(()) => Ok(text.get_ref().clone()),
        Err(why) => Err(wrong(span(text), why, None)),
    };
    list.iter().map(one).collect()
}

/// Whether a text can be the name of a procedure.
///
/// # Errors
///
/// A sentence that says why it cannot.
pub fn procedure(text: &str) -> Result<(), String> {
    match is_name(text) {
        true => Ok(()),
        false => Err(format!("`{text}` is no name of a procedure: a letter, then letters, digits and `_`")),
    }
}

/// Whether a text can define a macro.
///
/// # Errors
///
/// A sentence that says why it cannot.
pub fn definition(text: &str) -> Result<(), String> {
    let head = text.split('=').next().unwrap_or_default();
    let name = head.split('(').next().unwrap_or_default();
    let is_closed = !head.contains('(') || head.ends_with(')');
    match is_name(name.trim_start_matches('_')) && is_closed {
        true => Ok(()),
        false => Err(format!("`{text}` defines no macro; it is NAME, NAME=text or NAME(a,b)=text")),
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$'))
}

fn named<T: Copy>(
    table: &[(&'static str, T)],
    word: &Spanned<String>,
    what: &str,
) -> Result<T, Box<Diagnostic>> {
    if let Some((_, value)) = table.iter().find(|(name, _)| name.eq_ignore_ascii_case(word.get_ref())) {
        return Ok(*value);
    }
    let names: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
    let why = format!("`{}` is no {what}; there are {}", word.get_ref(), names.join(", "));
    Err(wrong(span(word), why, nearest(word.get_ref(), names.into_iter())))
}

fn span<T>(value: &Spanned<T>) -> Span {
    Span::new(value.span().start, value.span().end)
}

fn wrong(span: Span, why: String, meant: Option<&str>) -> Box<Diagnostic> {
    let mut diagnostic = Diagnostic::new(Level::Error, "config", why).label(span, "");
    if let Some(meant) = meant {
        diagnostic = diagnostic.help(format!("`{meant}` was probably meant"));
    }
    Box::new(diagnostic)
}

/// What the reader of the format refuses, with the key that was probably meant.
fn refusal(text: &str, error: &toml::de::Error) -> Box<Diagnostic> {
    let range = error.span().unwrap_or(0..text.len().min(1));
    let mut words = error.message().split('`').skip(1).step_by(2);
    let meant = match error.message().starts_with("unknown field") {
        true => words.next().map(|wrong| (wrong.to_string(), words.collect::<Vec<&str>>())),
        false => None,
    };
    let meant = meant.and_then(|(wrong, known)| nearest(&wrong, known.into_iter()));
    wrong(Span::new(range.start, range.end), error.message().to_string(), meant)
}

/// The most that a word may be away from another to pass for a slip of the pen.
const SLIPS_MAX: usize = 3;

/// The known word that is nearest to `wrong`, unless all are far away.
pub fn nearest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|word| (distance(wrong, word), word))
        .filter(|(distance, word)| *distance <= SLIPS_MAX && *distance < word.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// How many characters must be changed, added or left out.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, own) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for j in 0..b.len() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(own != b[j])).min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod test {
    use super::Config;
    use crate::finding::Level;
    use crate::form::Form;
    use crate::mpi::Binding;
    use crate::options::{Options, Standard};

    #[test]
    fn every_key_arrives() {
        let text = r#"
            select = ["fr01", "FR14"]
            ignore = ["FR02"]
            min-level = "warning"
            std = "f2003"
            binding = "mpif.h"
            dummy = ["dd"]
            sync-routine = "keep"
            procedures = ["halo_recv nonblocking buf:out n request:request"]
            exclude = ["vendor/**"]
            include = ["inc"]
            define = ["N=3"]
            baseline = "lint.json"
            [[form]]
            files = ["*.inc"]
            form = "fixed"
        "#;
        let config = Config::parse(text).expect("the text is right");
        let mut options = Options::default();
        config.apply(&mut options);
        assert_eq!(options.select, ["FR01", "FR14"]);
        assert_eq!(options.ignore, ["FR02"]);
        assert_eq!(options.min_level, Level::Warning);
        assert_eq!(options.standard, Standard::F2003);
        assert_eq!(options.binding, Binding::Mpif);
        assert_eq!(options.dummies, ["dd"]);
        assert_eq!(options.sync_routine.as_deref(), Some("keep"));
        assert_eq!(options.reading.macros, ["N=3"]);
        assert!(options.wrappers.concerns("halo_recv"));
        assert_eq!(config.exclude, ["vendor/**"]);
        assert_eq!(config.include, ["inc"]);
        assert_eq!(config.baseline.as_deref(), Some("lint.json"));
        assert_eq!(config.forms, [("*.inc".to_string(), Form::Fixed)]);
        // What a file does not say stays as it was.
        let mut untouched = Options { min_level: Level::Error, ..Options::default() };
        Config::parse("").expect("an empty file is right").apply(&mut untouched);
        assert_eq!(untouched.min_level, Level::Error);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place_and_what_was_meant() {
        for (text, title, place, help) in [
            ("slect = []", "unknown field `slect`", "slect", "`select` was probably meant"),
            (
                "min_level = 'note'",
                "unknown field `min_level`",
                "min_level",
                "`min-level` was probably meant",
            ),
            ("std = 'f2008x'", "`f2008x` is no standard", "'f2008x'", "`f2008` was probably meant"),
            ("select = ['FR1']", "no rule has the code `FR1`", "'FR1'", "`FR01` was probably meant"),
            ("ignore = ['FR14']", "FR14 is the reason", "'FR14'", ""),
            ("binding = 'mpi_f80'", "`mpi_f80` is no binding", "'mpi_f80'", "`mpi_f08` was probably meant"),
            ("procedures = ['x blocking a:outward']", "`outward` is no word", "'x blocking a:outward'", ""),
            (
                "[[form]]\nfiles = []\nform = 'fixd'",
                "`fixd` is no source form",
                "'fixd'",
                "`fixed` was probably",
            ),
            ("sync-routine = 'not a name'", "`not a name` is no name of a procedure", "'not a name'", ""),
            ("dummy = ['dd', '1st']", "`1st` is no name of a procedure", "'1st'", ""),
            ("define = ['N=3', '9x=1']", "`9x=1` defines no macro", "'9x=1'", ""),
            ("define = ['F(a=1']", "`F(a=1` defines no macro", "'F(a=1'", ""),
            ("std = 3", "invalid type", "3", ""),
            ("std = ", "", "", ""),
        ] {
            let diagnostic = *Config::parse(text).expect_err(text);
            assert!(diagnostic.title.contains(title), "{text}: {}", diagnostic.title);
            let span = diagnostic.primary().expect("there is a place").span;
            if !place.is_empty() {
                assert_eq!(&text[span.start as usize..span.end as usize], place, "{text}");
            }
            let helps: Vec<&str> = diagnostic.helps.iter().map(|help| help.text.as_str()).collect();
            assert!(helps.join("").starts_with(help), "{text}: {helps:?}");
        }
    }
}
