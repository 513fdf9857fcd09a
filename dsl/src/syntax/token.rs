//! Text to tokens. Never decides what a statement means.

use logos::Logos;

/// A word, number or sign of the language.
#[derive(Logos, Clone, Copy, PartialEq, Debug)]
#[logos(skip r"[ \t]+")]
#[logos(skip(r"#[^\n\r]*", allow_greedy = true))]
pub enum Token<'a> {
    /// End of a line; the splitter removes those that do not end a statement.
    #[regex(r"\r\n|\n|\r")]
    NewLine,

    /// `program`
    #[token("program")]
    Program,
    /// `param`
    #[token("param")]
    Param,
    /// `let`
    #[token("let")]
    Let,
    /// `grid`
    #[token("grid")]
    Grid,
    /// `field`
    #[token("field")]
    Field,
    /// `init`
    #[token("init")]
    Init,
    /// `boundary`
    #[token("boundary")]
    Boundary,
    /// `function`
    #[token("function")]
    Function,
    /// `update`
    #[token("update")]
    Update,
    /// `together`
    #[token("together")]
    Together,
    /// `source`
    #[token("source")]
    Source,
    /// `reduce`
    #[token("reduce")]
    Reduce,
    /// `until`
    #[token("until")]
    Until,
    /// `output`
    #[token("output")]
    Output,
    /// `print`
    #[token("print")]
    Print,
    /// `probe`
    #[token("probe")]
    Probe,
    /// `checkpoint`
    #[token("checkpoint")]
    Checkpoint,
    /// `decompose`
    #[token("decompose")]
    Decompose,
    /// `epoch`
    #[token("epoch")]
    Epoch,
    /// `overlap`
    #[token("overlap")]
    Overlap,
    /// `block`
    #[token("block")]
    Block,

    /// `in`
    #[token("in")]
    In,
    /// `on`
    #[token("on")]
    On,
    /// `at`
    #[token("at")]
    At,
    /// `of`
    #[token("of")]
    Of,
    /// `as`
    #[token("as")]
    As,
    /// `every`
    #[token("every")]
    Every,
    /// `where`
    #[token("where")]
    Where,
    /// `levels`
    #[token("levels")]
    Levels,
    /// `constant`
    #[token("constant")]
    Constant,
    /// `neumann`
    #[token("neumann")]
    Neumann,
    /// `file`
    #[token("file")]
    File,
    /// `if`
    #[token("if")]
    If,
    /// `then`
    #[token("then")]
    Then,
    /// `else`
    #[token("else")]
    Else,
    /// `and`
    #[token("and")]
    And,
    /// `or`
    #[token("or")]
    Or,
    /// `not`
    #[token("not")]
    Not,
    /// `xor`
    #[token("xor")]
    Xor,
    /// `band`
    #[token("band")]
    Band,
    /// `bor`
    #[token("bor")]
    Bor,
    /// `bnot`
    #[token("bnot")]
    Bnot,
    /// `mod`
    #[token("mod")]
    Mod,
    /// `div`
    #[token("div")]
    Div,

    /// A name.
    #[regex(r"[A-Za-z_][A-Za-z_0-9]*")]
    Name(&'a str),
    /// A whole number, decimal or `0x…`.
    #[regex(r"[0-9]+")]
    #[regex(r"0x[0-9A-Fa-f]+")]
    Int(&'a str),
    /// A number with a point or an exponent.
    #[regex(r"[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?")]
    #[regex(r"\.[0-9]+([eE][+-]?[0-9]+)?")]
    #[regex(r"[0-9]+[eE][+-]?[0-9]+")]
    Real(&'a str),
    /// `8..`: the splitter makes two tokens of it.
    #[regex(r"[0-9]+\.\.")]
    IntDots(&'a str),
    /// A text in double quotes, without them.
    #[regex(r#""[^"\n\r]*""#, |lexer| { let text = lexer.slice(); &text[1..text.len() - 1] })]
    Text(&'a str),

    /// `(`
    #[token("(")]
    ParenOpen,
    /// `)`
    #[token(")")]
    ParenClose,
    /// `[`
    #[token("[")]
    BracketOpen,
    /// `]`
    #[token("]")]
    BracketClose,
    /// `{`
    #[token("{")]
    BraceOpen,
    /// `}`
    #[token("}")]
    BraceClose,
    /// `|`
    #[token("|")]
    Bar,
    /// `,`
    #[token(",")]
    Comma,
    /// `;`
    #[token(";")]
    Semicolon,
    /// `:`
    #[token(":")]
    Colon,
    /// `.`
    #[token(".")]
    Dot,
    /// `..`
    #[token("..")]
    Dots,
    /// `=`
    #[token("=")]
    Assign,
    /// `+=`
    #[token("+=")]
    AddAssign,
    /// `+`
    #[token("+")]
    Plus,
    /// `-`
    #[token("-")]
    Minus,
    /// `*`
    #[token("*")]
    Star,
    /// `/`
    #[token("/")]
    Slash,
    /// `^`
    #[token("^")]
    Caret,
    /// `==`
    #[token("==")]
    Equal,
    /// `!=`
    #[token("!=")]
    Unequal,
    /// `<`
    #[token("<")]
    Less,
    /// `<=`
    #[token("<=")]
    LessEqual,
    /// `>`
    #[token(">")]
    Greater,
    /// `>=`
    #[token(">=")]
    GreaterEqual,
    /// `<<`
    #[token("<<")]
    ShiftLeft,
    /// `>>`
    #[token(">>")]
    ShiftRight,
}

impl Token<'_> {
    /// Whether a statement starts with it.
    pub fn starts_statement(self) -> bool {
        matches!(
            self,
            Token::Program
                | Token::Param
                | Token::Let
                | Token::Grid
                | Token::Field
                | Token::Init
                | Token::Boundary
                | Token::Function
                | Token::Update
                | Token::Together
                | Token::Source
                | Token::Reduce
                | Token::Until
                | Token::Output
                | Token::Print
                | Token::Probe
                | Token::Checkpoint
                | Token::Decompose
                | Token::Epoch
                | Token::Overlap
                | Token::Block
        )
    }

    /// Whether a line that ends in it goes on.
    pub fn continues_line(self) -> bool {
        matches!(
            self,
            Token::Comma
                | Token::Semicolon
                | Token::Colon
                | Token::Assign
                | Token::AddAssign
                | Token::Plus
                | Token::Minus
                | Token::Star
                | Token::Slash
                | Token::Caret
                | Token::Equal
                | Token::Unequal
                | Token::Less
                | Token::LessEqual
                | Token::Greater
                | Token::GreaterEqual
                | Token::ShiftLeft
                | Token::ShiftRight
                | Token::And
                | Token::Or
                | Token::Not
                | Token::Xor
                | Token::Band
                | Token::Bor
                | Token::Bnot
                | Token::Mod
                | Token::Div
                | Token::If
                | Token::Then
                | Token::Else
        )
    }

    /// Whether it is a reserved word.
    pub fn is_word(self) -> bool {
        self.starts_statement()
            || matches!(
                self,
                Token::In
                    | Token::On
                    | Token::At
                    | Token::Of
                    | Token::As
                    | Token::Every
                    | Token::Where
                    | Token::Levels
                    | Token::Constant
                    | Token::Neumann
                    | Token::File
                    | Token::If
                    | Token::Then
                    | Token::Else
                    | Token::And
                    | Token::Or
                    | Token::Not
                    | Token::Xor
                    | Token::Band
                    | Token::Bor
                    | Token::Bnot
                    | Token::Mod
                    | Token::Div
            )
    }
}
