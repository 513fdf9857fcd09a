//! What a tool has to say about a source text. Never decides how it looks.

use crate::{FileId, Span};

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Level {
    /// The input is refused.
    Error,
    /// The input is accepted, and is probably not meant so.
    Warning,
    /// Something worth knowing.
    Note,
}

impl Level {
    /// The word that starts the message.
    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "note",
        }
    }
}

/// A marked place with a few words. The first label of a diagnostic is its primary place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// The file.
    pub file: FileId,
    /// The place.
    pub span: Span,
    /// What is there; may be empty.
    pub text: String,
}

/// One replacement of text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// The file.
    pub file: FileId,
    /// What goes; empty for an insertion.
    pub span: Span,
    /// What comes.
    pub replacement: String,
}

/// How sure a suggested replacement is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Applicability {
    /// It keeps or restores the meaning; a tool may apply it.
    Safe,
    /// It may change the meaning; a person should look.
    Unsafe,
    /// It shows the form and cannot be applied as it is.
    Display,
}

/// A way out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Help {
    /// A sentence.
    pub text: String,
    /// What to change, all of it together; may be empty.
    pub edits: Vec<Edit>,
    /// How sure the edits are.
    pub applicability: Applicability,
}

/// One finding: code, sentence, places, notes and ways out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// How bad it is.
    pub level: Level,
    /// Stable code, such as `E0001` or `FR01`.
    pub code: String,
    /// One sentence, lower case, without a full stop.
    pub title: String,
    /// Marked places, the primary one first.
    pub labels: Vec<Label>,
    /// Reasons.
    pub notes: Vec<String>,
    /// Ways out.
    pub helps: Vec<Help>,
}

impl Diagnostic {
    /// A finding without places yet.
    pub fn new(level: Level, code: impl Into<String>, title: impl Into<String>) -> Diagnostic {
        Diagnostic {
            level,
            code: code.into(),
            title: title.into(),
            labels: Vec::new(),
            notes: Vec::new(),
            helps: Vec::new(),
        }
    }

    /// An error.
    pub fn error(code: impl Into<String>, title: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Level::Error, code, title)
    }

    /// A warning.
    pub fn warning(code: impl Into<String>, title: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Level::Warning, code, title)
    }

    /// Marks a place of the first file.
    #[must_use]
    pub fn label(self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.label_in(FileId(0), span, text)
    }

    /// Marks a place of any file.
    #[must_use]
    pub fn label_in(mut self, file: FileId, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { file, span, text: text.into() });
        self
    }

    /// Adds a reason.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(text.into());
        self
    }

    /// Adds a way out in words.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.helps.push(Help { text: text.into(), edits: Vec::new(), applicability: Applicability::Display });
        self
    }

    /// Adds a way out with one replacement in the first file.
    #[must_use]
    pub fn suggest(
        self,
        text: impl Into<String>,
        span: Span,
        replacement: impl Into<String>,
        applicability: Applicability,
    ) -> Diagnostic {
        let edit = Edit { file: FileId(0), span, replacement: replacement.into() };
        self.suggest_edits(text, vec![edit], applicability)
    }

    /// Adds a way out with several replacements that belong together.
    #[must_use]
    pub fn suggest_edits(
        mut self,
        text: impl Into<String>,
        edits: Vec<Edit>,
        applicability: Applicability,
    ) -> Diagnostic {
        self.helps.push(Help { text: text.into(), edits, applicability });
        self
    }

    /// The primary place.
    pub fn primary(&self) -> Option<&Label> {
        self.labels.first()
    }

    /// Whether the input is refused.
    pub fn is_error(&self) -> bool {
        self.level == Level::Error
    }
}
