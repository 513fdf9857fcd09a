//! Every message of the macros in one table: code, requirement, text, label and help. Never decides anything.
//!
//! Each row has a case of its own in `tests/ui/`, a file named like its code. `{0}` and `{1}` are filled with words of
//! the program. Stable Rust gives a macro one text per error, so label and help are lines of that text; the label
//! says what the marked tokens are.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// One row of the table.
pub(crate) struct Message {
    /// Names the mistake; `tests/ui/` holds a file of this name.
    pub(crate) code: &'static str,
    /// The requirement in `docs/spec` that the program would break.
    pub(crate) rule: &'static str,
    /// What is wrong, in one sentence.
    pub(crate) text: &'static str,
    /// What the marked tokens are.
    pub(crate) label: &'static str,
    /// What to write instead.
    pub(crate) help: &'static str,
}

macro_rules! messages {
    ($($name:ident = $code:literal, $rule:literal, $text:literal, $label:literal, $help:literal;)*) => {
        $(pub(crate) const $name: Message =
            Message { code: $code, rule: $rule, text: $text, label: $label, help: $help };)*

        /// The whole table, for the test that looks for a case per row.
        #[cfg(test)]
        #[allow(dead_code)] // Only the tests that include this file use it.
        pub(crate) const ALL: &[Message] = &[$($name),*];
    };
}

messages! {
    // The derive.
    ELEMENT_KIND = "element_kind", "RMA-COMM-05",
        "`{0}` is {1}, and elements of windows are structures with fields",
        "not a structure with fields",
        "write a structure; for a choice keep a number in it, as every pattern of bits must be a value";
    ELEMENT_ORDER = "element_order", "RMA-COMM-05",
        "the fields of `{0}` have no fixed order, and ranks may be different programs",
        "no `repr(C)` stands above it",
        "write `#[repr(C)]` above the structure";
    ELEMENT_GENERIC = "element_generic", "RMA-COMM-05",
        "`{0}` has parameters, and the layout of an element is known without them",
        "a parameter",
        "write the structure for the types that are needed";
    ELEMENT_REFERENCE = "element_reference", "RMA-WIN-10",
        "a field of type `{0}` would be an address that means nothing to another rank",
        "this field points somewhere",
        "hold the data themselves, or an index (`u64`) into a window";
    ELEMENT_BOOL = "element_bool", "RMA-COMM-05",
        "a `bool` is only sound while its byte is 0 or 1, and another rank can put any byte",
        "this field would be a `bool`",
        "write `rma::Bool`, of which every byte is a value";
    ELEMENT_WORD = "element_word", "RMA-COMM-05",
        "a field of type `{0}` has a size that depends on the machine",
        "no fixed size",
        "write `u64` or `i64`";
    ELEMENT_OPTION = "element_option", "RMA-COMM-06",
        "the only thing that `#[element(…)]` says is `padded`",
        "something else is said here",
        "write `#[element(padded)]`, with which transfers leave padding alone, or nothing";

    // The attribute.
    KIND_MISSING = "kind_missing", "RMA-MAC-01",
        "the attribute does not say which kind of epoch the body is",
        "a kind is missing here",
        "write for example `#[rma_epoch(fence(u))]`; the kinds are fence, access, exposure, exchange, lock, local and offer";
    KIND_UNKNOWN = "kind_unknown", "RMA-MAC-01",
        "`{0}` is no kind of epoch",
        "not a kind",
        "the kinds are fence, access, exposure, exchange, lock, local and offer";
    OFFER_ALONE = "offer_alone", "PGO-EXT-03",
        "the events on `{0}` share their body with another epoch",
        "this kind stands alone",
        "write two functions: the offer may serve events while the other epoch is open, and neither waits for the other";
    OFFER_BUFFERS = "offer_buffers", "PGO-EXT-03",
        "an event of a team is a put or a get of a buffer, and this is a {0} of something else",
        "not a put or get of a buffer",
        "write `team.at(rank)[a..b].copy_from_slice(&buffer)` or `buffer.copy_from_slice(&team.at(rank)[a..b])`; what \
         combines or brings values needs a window";
    OFFER_DANGLING = "offer_dangling", "PGO-COMB-06",
        "the event that goes on here has no end",
        "the last event to this rank is combined with a next one, and there is none",
        "write the last part with `at` instead of `combine`";
    OFFER_EVENTS = "offer_events", "PGO-OFFER-02",
        "`{0}` is no choice of events",
        "not a choice",
        "write `events = puts`, `events = gets` or `events = both`; without it the offer serves puts";
    OFFER_ORIGIN_BUSY = "offer_origin_busy", "PGO-PUT-03",
        "`{0}` belongs to {1} until the offer at the end of this function",
        "touched before that",
        "use it after the function has returned";
    ATTRIBUTE_SYNTAX = "attribute_syntax", "RMA-MAC-06",
        "the attribute cannot be read: {0}",
        "reading stopped here",
        "an epoch is written `kind(window, option = value)`, for example `lock(counter, rank = owner, exclusive)`";
    WINDOW_MISSING = "window_missing", "RMA-MAC-05",
        "this `{0}` epoch names no window",
        "a window is missing in the parentheses",
        "name a parameter, as in `{0}(u)`, or bind a name to an expression, as in `{0}(u = self.field)`";
    WINDOW_UNKNOWN = "window_unknown", "RMA-MAC-05",
        "`{0}` is not a parameter of this function",
        "no parameter has this name",
        "name a parameter that is a window, or bind the name to an expression: `{0} = self.field`";
    WINDOW_TWICE = "window_twice", "RMA-SYNC-07",
        "the window `{0}` gets a second epoch while its first is open",
        "named a second time",
        "one window has one epoch at a time: name it once, or write two functions and call one after the other";
    OPTION_UNKNOWN = "option_unknown", "RMA-MAC-06",
        "an epoch of kind `{0}` has no option `{1}`",
        "not an option of `{0}`",
        "fence takes none; lock: rank, exclusive, shared, info, because; access: targets, info, because; \
         exposure: origins, count; exchange: targets, origins, count, info, because; local: read; \
         offer: tag, count, over, events";
    OPTION_TWICE = "option_twice", "RMA-MAC-06",
        "the option `{0}` is given twice",
        "the second one",
        "keep one of the two";
    OPTION_MISSING = "option_missing", "RMA-MAC-05",
        "an epoch of kind `{0}` needs `{1}`",
        "`{1}` is missing in these parentheses",
        "lock needs `rank = …`, access `targets = […]`, exposure `origins = […]` or `origins = any`, exchange both \
         `targets` and `origins`, offer `tag = …` and `count = …`";
    LOCK_KIND_MISSING = "lock_kind_missing", "RMA-LOCK-15",
        "this lock does not say whether it is exclusive or shared",
        "`exclusive` or `shared` is missing in these parentheses",
        "write `exclusive` if the body changes anything, `shared` if it only reads: `lock(u, rank = r, exclusive)`";
    COUNT_MISSING = "count_missing", "RMA-SYNC-09",
        "an exposure to any origin does not say how many to wait for",
        "`origins = any` needs a count",
        "write `origins = any, count = n`, or name the ranks: `origins = [left, right]`";
    COUNT_WITH_GROUP = "count_with_group", "RMA-SYNC-09",
        "a count stands beside named origins, which are all waited for",
        "not needed",
        "drop `count`, or write `origins = any, count = n`";
    INFO_UNKNOWN = "info_unknown", "RMA-INFO-09",
        "`{0}` is no value of `info`",
        "not `strong`, `weak` or `nocheck`",
        "strong (the default) waits until the target is open, weak may wait later, nocheck does not wait at all";
    NOCHECK_WITHOUT_BECAUSE = "nocheck_without_because", "RMA-INFO-09",
        "`info = nocheck` needs the reason why no check is needed",
        "this takes for granted that every target is already open to the caller",
        "say why: `info = nocheck, because = \"the barrier above follows every post\"`; the reason is shown if it was wrong";
    BECAUSE_WITHOUT_NOCHECK = "because_without_nocheck", "RMA-INFO-09",
        "a reason is given, but nothing is left unchecked",
        "this belongs to `info = nocheck`",
        "drop `because`, or add `info = nocheck`";
    BECAUSE_NOT_TEXT = "because_not_text", "RMA-INFO-09",
        "`because` takes a text that gives the reason",
        "not a string literal, or an empty one",
        "write `because = \"the barrier above follows every post\"`";
    TARGET_TWICE = "target_twice", "EX-GEN-02",
        "rank {0} is named twice among the targets",
        "the second time",
        "targets are a set: a rank that is neighbour on two sides gets one epoch with two transfers";

    // The function.
    NOT_A_FUNCTION = "not_a_function", "RMA-MAC-01",
        "`#[rma_epoch]` belongs on a function with a body",
        "not a function with a body",
        "move what the epoch encloses into a function of its own";
    SUSPENDS = "suspends", "RMA-MAC-06",
        "an epoch cannot be suspended: while it waits, its peers wait too",
        "`{0}` would leave the epoch open for an unknown time",
        "await before or after the epoch, and keep the annotated function an ordinary one";
    CONST_FUNCTION = "const_function", "RMA-MAC-01",
        "an epoch cannot run at compile time",
        "drop this `const`",
        "an annotated function is an ordinary function";
    NO_RESULT = "no_result", "RMA-MAC-02",
        "an epoch can fail, but this function does not return a `Result`",
        "not a `Result`",
        "return `rma::Result<()>` and end the body with `Ok(())`";

    // The body.
    NESTED_EPOCH = "nested_epoch", "RMA-SYNC-07",
        "a second epoch is opened on `{0}` inside its {1} epoch",
        "opened here",
        "the body is the epoch: write transfers directly, and put another epoch into another function";
    WINDOW_REBOUND = "window_rebound", "RMA-MAC-05",
        "`{0}` names the epoch's window and is bound again here",
        "bound again",
        "choose another name";
    IN_CLOSURE = "in_closure", "RMA-MAC-02",
        "a {0} inside a closure cannot report its error to the epoch",
        "inside a closure",
        "use a `for` loop, which can leave the epoch by an error";
    OPAQUE_MACRO = "opaque_macro", "RMA-MAC-04",
        "the window `{0}` is used inside `{1}!`, where its accesses cannot be seen",
        "inside a macro",
        "read into a variable before: `let x = {0}[i];`";
    PLACE_WITHOUT_INDEX = "place_without_index", "RMA-MAC-06",
        "`{0}.at(…)` names a rank, but no place in its window",
        "an index is missing",
        "write `{0}.at(rank)[i]` or `{0}.at(rank)[a..b]`";
    AT_TAKES_A_RANK = "at_takes_a_rank", "RMA-MAC-06",
        "`at` takes one argument, the rank whose window is meant",
        "not one argument",
        "write `{0}.at(rank)[i]`";
    TWO_DIMENSIONAL = "two_dimensional", "RMA-COMM-05",
        "places with more than one axis are not built yet",
        "a tuple as index",
        "transfer row by row: `u.at(r)[start..start + n].copy_from_slice(&row)`";
    OPEN_RANGE = "open_range", "RMA-COMM-01",
        "a range of a window needs an end",
        "ends nowhere",
        "write it out, for example `a..{0}.len()` for one's own part, `a..{0}.len_at(rank)?` for another's";
    NO_SUCH_ACCUMULATE = "no_such_accumulate", "RMA-COMM-04",
        "no accumulate does what `{0}` does",
        "applied to memory of another rank",
        "the operators are =, +=, *=, &=, |= and ^=, and the methods min and max; for `-=` add the negated value";
    UNKNOWN_METHOD = "unknown_method", "RMA-COMM-04",
        "`{0}` is no operation on memory of another rank",
        "not a transfer",
        "an element has fetch_add, fetch_and, fetch_or, fetch_xor, fetch_min, fetch_max, swap, compare_swap, min and \
         max; a range has copy_from_slice and to_vec";
    WRONG_ARGUMENTS = "wrong_arguments", "RMA-COMM-04",
        "`{0}` takes {1}",
        "called differently",
        "write for example `u.at(r)[i].fetch_add(1)` or `u.at(r)[i].compare_swap(expected, new)`";
    USED_TOO_EARLY = "used_too_early", "RMA-MAC-03",
        "this value is used inside the epoch, but arrives with {0} that ends it",
        "only promised here",
        "return it (`let x = u.at(r)[i]; Ok(x)`) and use what the function returns";
    PENDING_TYPED = "pending_typed", "RMA-MAC-03",
        "this value is a promise inside the epoch and becomes `{0}` with {1} that ends it",
        "not yet a `{0}`",
        "drop the type (`let x = u.at(r)[i];`), return `Ok(x)`, and use what the function returns";
    RANGE_AS_VALUE = "range_as_value", "RMA-COMM-02",
        "a range of another rank's memory is no value",
        "where should the data go?",
        "write `buffer.copy_from_slice(&u.at(r)[a..b])`, or `u.at(r)[a..b].to_vec()` for a vector that the closed epoch opens";
    RANGE_ASSIGNED = "range_assigned", "RMA-COMM-01",
        "a range takes a buffer, not a value",
        "assigned with `=`",
        "write `u.at(r)[a..b].copy_from_slice(&buffer)`";
    ELEMENT_AS_RANGE = "element_as_range", "RMA-COMM-01",
        "`{0}` needs a range, and this is one element",
        "one element",
        "write `u.at(r)[i..i + n].{0}(…)`, or for one element `u.at(r)[i] = value` and `let x = u.at(r)[i]`";
    REMOTE_TO_REMOTE = "remote_to_remote", "RMA-COMM-01",
        "data cannot go from one rank to another without passing through this one",
        "both ends are remote",
        "get into a buffer in one epoch and put it in the next";
    REFERENCE_TO_EXPOSED = "reference_to_exposed", "RMA-WIN-10",
        "a reference would point into memory that other ranks may change",
        "a reference into the window `{0}`",
        "copy the value (`let x = {0}[i];`), or work inside a `local({0})` epoch, where the window is a slice";
    STORE_WHILE_EXPOSED = "store_while_exposed", "RMA-MAC-04",
        "a store into the window `{0}` while its {1} epoch lets other ranks write to it",
        "stored to here",
        "store before or after, in a `local({0})` epoch, or keep what changes meanwhile in a second window";
    LOAD_RETURNED = "load_returned", "VIS-EX2-05",
        "the body returns what window `{0}` holds before {1} that ends this epoch, when puts of other ranks may be missing",
        "loaded too early",
        "read it after the function has returned, in a `local({0}, read)` epoch or by `{0}.load(i)`; if the old value is meant, \
         load it into a variable first";
    NO_TRANSFER_IN_KIND = "no_transfer_in_kind", "RMA-MAC-05",
        "a {0} in an epoch of kind `{1}`, which opens no other rank's window",
        "reaches another rank",
        "use `fence`, `access`, `exchange` or `lock` for transfers; for one's own memory write `u[i]`";
    RANK_NOT_OPENED = "rank_not_opened", "RMA-MAC-05",
        "this {0} goes to rank {1}, which the epoch does not open",
        "not among the ranks of the attribute",
        "name the rank in the attribute, or use the rank that it names";
    WINDOW_NOT_OPENED = "window_not_opened", "RMA-MAC-05",
        "the window `{0}` is not part of this epoch",
        "not named in the attribute",
        "name it in the attribute, as in `fence(u, {0})`";
    ORIGIN_BUSY = "origin_busy", "RMA-MAC-03",
        "`{0}` belongs to {1} until {2} that ends this epoch",
        "touched before that",
        "use it after the function has returned; a put can also be given a copy: `copy_from_slice({0}.to_vec())`";
    ACCUMULATE_AS_VALUE = "accumulate_as_value", "RMA-COMM-03",
        "`{0}` on memory of another rank is an accumulate and has no value",
        "used as a value",
        "use `fetch_{0}` for the old value, or write it as a statement of its own";

    // #[rma_test].
    TEST_RANKS = "test_ranks", "RMA-MAC-06",
        "the test does not say on how many ranks it runs",
        "`ranks` is missing, or not a number from 1 to 64",
        "write `#[rma_test(ranks = 4)]`";
    TEST_SYNTAX = "test_syntax", "RMA-MAC-06",
        "the attribute cannot be read: {0}",
        "reading stopped here",
        "write `#[rma_test(ranks = 4, transports = [local, shm])]`";
    TEST_OPTION = "test_option", "RMA-MAC-06",
        "`#[rma_test]` has no option `{0}`",
        "not an option",
        "the options are `ranks = 4` and `transports = [local, shm]`";
    TEST_TRANSPORT = "test_transport", "RMA-MAC-06",
        "`{0}` is no transport",
        "not a transport",
        "the transports are local, shm, tcp and mpi";
    TEST_SIGNATURE = "test_signature", "RMA-MAC-06",
        "a test function takes the team and nothing else",
        "not `(team: &Team)`",
        "write `fn name(team: &rma::Team) -> rma::Result<()>`";
}

/// Gathers the errors of a whole function, so that all are reported at once.
#[derive(Default)]
pub(crate) struct Errors(Vec<syn::Error>);

impl Errors {
    /// Adds a message at the tokens of `at`, with the words for `{0}`, `{1}` and `{2}`.
    pub(crate) fn push(&mut self, at: &dyn ToTokens, message: &Message, words: &[&dyn std::fmt::Display]) {
        self.0.push(syn::Error::new_spanned(DynTokens(at), message.render(words)));
    }

    /// Adds a message at a span.
    pub(crate) fn push_at(&mut self, at: Span, message: &Message, words: &[&dyn std::fmt::Display]) {
        self.0.push(syn::Error::new(at, message.render(words)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One `compile_error!` per message, in reading order.
    pub(crate) fn into_tokens(mut self) -> TokenStream {
        self.0.sort_by_key(|error| {
            let start = error.span().start();
            (start.line, start.column)
        });
        self.0.iter().map(syn::Error::to_compile_error).collect()
    }

    /// The texts, in order of discovery.
    #[cfg(test)]
    #[allow(dead_code)] // Only the tests that include this file use it.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }
}

struct DynTokens<'a>(&'a dyn ToTokens);

impl ToTokens for DynTokens<'_> {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.0.to_tokens(tokens);
    }
}

impl Message {
    /// The text of the error, its label and its help, with the words filled in.
    fn render(&self, words: &[&dyn std::fmt::Display]) -> String {
        let mut text = format!(
            "{}\n  here: {}\n  help: {}\n  rule: {} [{}]",
            self.text, self.label, self.help, self.rule, self.code
        );
        for (index, word) in words.iter().enumerate() {
            text = text.replace(&format!("{{{index}}}"), &word.to_string());
        }
        text
    }
}
