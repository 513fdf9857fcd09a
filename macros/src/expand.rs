//! Model → tokens. The only file that writes `::rma::private` paths, and it writes no other path. Never judges.
//!
//! The body becomes a closure that gets each window's epoch handle under the window's name. The closures are handed
//! to the opening functions of `rma::private`, innermost layer inside, and whatever way control leaves a closure (its
//! end, `return`, `?`, a panic), the function that called it closes the epoch.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, ItemFn, ReturnType, Stmt};

use crate::check::literal;
use crate::model::{
    Access, Act, Body, Destination, Events, Function, HOLE, Info, Kind, Layer, Origin, Place, Remote,
    Section, Step, bare,
};
use crate::test_case::TestCase;

/// The function with its body inside its epochs.
pub(crate) fn function(function: Function) -> TokenStream {
    let Function { layers, mut item, body } = function;
    Filler { accesses: &body.accesses, layers: &layers }.visit_block_mut(&mut item.block);
    let answer = match pends(&layers, &body) {
        true => {
            // A body may end in `Ok(place)`, which becomes `Ok(call?)`.
            item.attrs.push(syn::parse_quote!(#[allow(clippy::needless_question_mark)]));
            let returned = returned(&item);
            quote!(::rma::private::Answer<_, #returned>)
        }
        // Nothing is pending, so the body's type is the function's, which infers what `sum()` or `parse()` means.
        false => returned(&item),
    };
    let block = &item.block;
    let innermost = layers.len() - 1;
    let body = layers.iter().enumerate().rev().fold(TokenStream::new(), |inside, (number, layer)| {
        let inside = if number == innermost { block.to_token_stream() } else { quote!({ #inside }) };
        let used = layer.kind.is_private() || body.accesses.iter().any(|access| access.layer == number);
        let used = used || mentioned(&body.steps, &|name| *name == layer.window);
        let window = &layer.window;
        // An epoch that only lets others in has nothing to do with its handle.
        let handle = if used { quote!(#window) } else { quote!(#[allow(unused_variables)] #window) };
        open(layer, number, &quote!(|#handle| -> #answer #inside))
    });
    item.block = Box::new(syn::Block {
        brace_token: item.block.brace_token,
        stmts: vec![Stmt::Expr(Expr::Verbatim(body), None)],
    });
    item.into_token_stream()
}

/// A test per transport, in a module that is named like the function.
pub(crate) fn test(case: TestCase) -> TokenStream {
    let TestCase { mut item, ranks, transports } = case;
    let name = item.sig.ident.clone();
    // What concerns the harness goes to the tests; all else (documentation, lints) stays with the function.
    let (harness, own) = std::mem::take(&mut item.attrs).into_iter().partition::<Vec<_>, _>(|attr| {
        attr.path().is_ident("ignore") || attr.path().is_ident("should_panic")
    });
    item.attrs = own;
    let tests = transports.iter().map(|transport| {
        let word = transport.to_string();
        quote! {
            #[test]
            #(#harness)*
            fn #transport() {
                ::rma::private::testing::run(#word, #ranks, ::core::module_path!(), super::#name);
            }
        }
    });
    quote! {
        #[cfg(test)]
        #item
        #[cfg(test)]
        mod #name {
            #(#tests)*
        }
    }
}

/// Whether the body can have a pending value: by a transfer that brings one, or by a call on the handle itself.
fn pends(layers: &[Layer], body: &Body) -> bool {
    let exposed = |name: &Ident| layers.iter().any(|layer| layer.window == *name && !layer.kind.is_private());
    let brings = |access: &Access| match &access.act {
        Act::Get { into, .. } => matches!(into, Destination::Pending | Destination::PendingVec),
        Act::FetchOp { .. } | Act::CompareSwap { .. } => true,
        _ => false,
    };
    body.accesses.iter().any(brings) || mentioned(&body.steps, &exposed)
}

/// Whether some steps mention a name.
fn mentioned(steps: &[Step], wanted: &dyn Fn(&Ident) -> bool) -> bool {
    steps.iter().any(|step| match step {
        Step::Use(name) => wanted(name),
        Step::Loop(steps) => mentioned(steps, wanted),
        Step::Branch(arms) => arms.iter().any(|steps| mentioned(steps, wanted)),
        Step::Access(_) | Step::Bind(_) | Step::Fence(_) | Step::Leave => false,
    })
}

/// The type that the function returns.
fn returned(item: &ItemFn) -> TokenStream {
    match &item.sig.output {
        ReturnType::Type(_, ty) => ty.to_token_stream(),
        ReturnType::Default => quote!(()),
    }
}

/// One layer around its body, a closure.
fn open(layer: &Layer, number: usize, closure: &TokenStream) -> TokenStream {
    let window = &layer.window;
    let place = match (&layer.place, layer.kind.opens_own_window()) {
        (Place::Reference, _) => quote!(#window),
        (Place::Owned, true) => quote!(&mut #window),
        (Place::Owned, false) => quote!(&#window),
        (Place::Expression(expr), mutable) => match (bare(expr), mutable) {
            (Expr::Reference(_), _) => quote!(#expr),
            (_, true) => quote!(&mut #expr),
            (_, false) => quote!(&#expr),
        },
    };
    // Only the outermost epoch may open pending values: an inner one would open those of the epochs around it.
    let module = if number == 0 { quote!(::rma::private) } else { quote!(::rma::private::inner) };
    let targets = layer.targets.as_ref().map(ranks);
    let origins = match (&layer.origins, &layer.count) {
        (Some(group), _) => {
            let group = ranks(group);
            quote!(::rma::private::Awaited::Group(#group))
        }
        (None, Some(count)) => quote!(::rma::private::Awaited::Any(#count)),
        (None, None) => TokenStream::new(),
    };
    let info = match &layer.info {
        Info::Strong => quote!(::rma::private::Info::Strong),
        Info::Weak => quote!(::rma::private::Info::Weak),
        Info::NoCheck(because) => quote!(::rma::private::Info::NoCheck(#because)),
    };
    match layer.kind {
        Kind::Fence => quote!(#module::fence(#place, #closure)),
        Kind::Access => quote!(#module::access(#place, #targets, #info, #closure)),
        Kind::Exposure => quote!(#module::exposure(#place, #origins, #closure)),
        Kind::Exchange => quote!(#module::exchange(#place, #targets, #origins, #info, #closure)),
        Kind::LockExclusive | Kind::LockShared => {
            let kind = if layer.kind == Kind::LockExclusive { quote!(Exclusive) } else { quote!(Shared) };
            let target = layer.targets.as_ref().map(rank);
            quote!(#module::lock(#place, #target, ::rma::private::LockKind::#kind, #info, #closure))
        }
        Kind::Local => quote!(#module::local_mut(#place, #closure)),
        Kind::LocalRead => quote!(#module::local(#place, #closure)),
        Kind::Offer => {
            let (Some(offer), Some(count)) = (&layer.offer, &layer.count) else { return TokenStream::new() };
            let events = match offer.events {
                Events::Puts => quote!(::rma::private::PUTS_OK),
                Events::Gets => quote!(::rma::private::GETS_OK),
                Events::Both => quote!(::rma::private::PUTS_OK | ::rma::private::GETS_OK),
            };
            let over = match &offer.over {
                Some(buffer) => quote!(::rma::private::over(&mut #buffer[..], #events)),
                None => quote!(::rma::private::nothing()),
            };
            let tag = &offer.tag;
            quote!(::rma::private::offer(#place, #tag, #count, #over, #closure))
        }
    }
}

/// A rank; a bare number is one too.
fn rank(expr: &Expr) -> TokenStream {
    match (bare(expr), literal(expr)) {
        (Expr::Lit(_), Some(number)) => {
            let number = proc_macro2::Literal::u64_unsuffixed(number);
            quote!(::rma::private::Rank(#number))
        }
        _ => quote!(#expr),
    }
}

/// A part of one's own window as one end of a transfer.
fn own_part(index: &Expr) -> TokenStream {
    match bare(index) {
        Expr::Range(_) => quote!(::rma::private::own(#index)),
        _ => quote!(::rma::private::own_element(#index)),
    }
}

/// A part of one's own window as a range.
fn own_range(index: &Expr) -> TokenStream {
    match bare(index) {
        Expr::Range(_) => quote!(#index),
        _ => quote!(::rma::private::one(#index)),
    }
}

/// A slice of ranks, from an array or from anything that lends one.
fn ranks(expr: &Expr) -> TokenStream {
    match bare(expr) {
        Expr::Array(array) => {
            let ranks = array.elems.iter().map(rank);
            quote!(&[#(#ranks),*])
        }
        other => quote!(::rma::private::ranks(&#other)),
    }
}

/// Fills the holes of a body.
struct Filler<'a> {
    accesses: &'a [Access],
    layers: &'a [Layer],
}

impl VisitMut for Filler<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        match hole(expr) {
            Some(number) => *expr = Expr::Verbatim(self.access(&self.accesses[number])),
            None => visit_mut::visit_expr_mut(self, expr),
        }
    }

    // Arguments of a macro may hold holes too, which the parser has put there as expressions.
    fn visit_macro_mut(&mut self, mac: &mut syn::Macro) {
        let list = syn::punctuated::Punctuated::<Expr, syn::Token![,]>::parse_terminated;
        if let Ok(mut list) = mac.parse_body_with(list) {
            for expr in &mut list {
                self.visit_expr_mut(expr);
            }
            mac.tokens = list.to_token_stream();
        }
    }
}

fn hole(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Macro(mac) if mac.mac.path.is_ident(HOLE) => {
            mac.mac.parse_body::<syn::LitInt>().ok()?.base10_parse().ok()
        }
        _ => None,
    }
}

impl Filler<'_> {
    /// An expression with its holes filled.
    fn filled(&mut self, expr: &Expr) -> Expr {
        let mut expr = expr.clone();
        self.visit_expr_mut(&mut expr);
        expr
    }

    fn name(&self, layer: usize) -> &Ident {
        &self.layers[layer].window
    }

    fn remote(&mut self, remote: &Remote) -> (TokenStream, Expr) {
        (rank(&self.filled(&remote.rank)), self.index(&remote.section))
    }

    fn index(&mut self, section: &Section) -> Expr {
        let mut index = self.filled(&section.index);
        if let Expr::Range(range) = &mut index
            && range.start.is_none()
        {
            range.start = Some(syn::parse_quote!(0));
        }
        index
    }

    /// A range of one's own part, as begin and end.
    fn own_range(&mut self, section: &Section) -> Expr {
        match self.index(section) {
            Expr::Range(syn::ExprRange { start, limits: syn::RangeLimits::Closed(_), end, .. }) => {
                syn::parse_quote!(#start..#end + 1)
            }
            other => other,
        }
    }

    /// The origin of a transfer into the window of `layer`.
    fn origin(&mut self, origin: &Origin, layer: usize) -> TokenStream {
        match origin {
            Origin::Value(value) => {
                let value = self.filled(value);
                quote_spanned!(value.span()=> [#value])
            }
            Origin::Buffer(buffer) => match bare(buffer) {
                Expr::Reference(reference) => {
                    let buffer = self.filled(&reference.expr);
                    quote!(&#buffer)
                }
                other => self.filled(other).to_token_stream(),
            },
            Origin::Own { layer: own, section } if *own == layer => own_part(&self.index(section)),
            Origin::Own { layer: own, section } => {
                let index = self.index(section);
                let own = self.name(*own);
                match bare(&index) {
                    Expr::Range(_) => quote!(#own.own(#index)),
                    // One element is loaded faster than described.
                    _ => quote!([::rma::private::load(#own, #index)]),
                }
            }
        }
    }

    /// A put or get of a team; `check` lets nothing else pass.
    fn event(&mut self, access: &Access, team: &Ident, span: Span) -> TokenStream {
        let Some(remote) = access.act.remote() else { return TokenStream::new() };
        let (rank, index) = self.remote(remote);
        let chain = if remote.goes_on { quote!(.combine()) } else { TokenStream::new() };
        match &access.act {
            Act::Put { from, .. } => {
                let origin = self.origin(from, access.layer);
                quote_spanned!(span=> #team #chain.put(#origin, #rank, #index)?)
            }
            Act::Get { into: Destination::Buffer(buffer), .. } => {
                let buffer = self.filled(buffer);
                quote_spanned!(span=> #team #chain.get(&mut #buffer[..], #rank, #index)?)
            }
            _ => TokenStream::new(),
        }
    }

    fn access(&mut self, access: &Access) -> TokenStream {
        let span = access.written.span();
        let u = self.layers[access.layer].window.clone();
        if self.layers[access.layer].kind == Kind::Offer {
            return self.event(access, &u, span);
        }
        match &access.act {
            Act::Put { to, from } => {
                let ((rank, index), origin) = (self.remote(to), self.origin(from, access.layer));
                quote_spanned!(span=> #u.put(#rank, #index, #origin)?)
            }
            Act::Get { from, into } => {
                let (rank, index) = self.remote(from);
                match into {
                    Destination::Pending => quote_spanned!(span=> #u.get_value(#rank, #index)?),
                    Destination::PendingVec => quote_spanned!(span=> #u.get_vec(#rank, #index)?),
                    Destination::Buffer(buffer) => {
                        let buffer = self.filled(buffer);
                        quote_spanned!(span=> #u.get(#rank, #index, &mut #buffer[..])?)
                    }
                    Destination::Own { layer, section } => {
                        let own = match (*layer == access.layer, self.index(section)) {
                            (true, index) => own_part(&index),
                            (false, index) => {
                                let (own, index) = (self.name(*layer), own_range(&index));
                                quote!(#own.own(#index))
                            }
                        };
                        quote_spanned!(span=> #u.get(#rank, #index, #own)?)
                    }
                }
            }
            Act::Accumulate { to, operation, from } => {
                let ((rank, index), origin) = (self.remote(to), self.origin(from, access.layer));
                let operation = Ident::new(operation.name(), span);
                quote_spanned!(span=> #u.accumulate(#rank, #index, ::rma::private::#operation, #origin)?)
            }
            Act::FetchOp { at, operation, value } => {
                let ((rank, index), value) = (self.remote(at), self.filled(value));
                let operation = Ident::new(operation.name(), span);
                quote_spanned!(span=> #u.fetch_op(#rank, #index, ::rma::private::#operation, #value)?)
            }
            Act::CompareSwap { at, expected, new } => {
                let ((rank, index), expected, new) =
                    (self.remote(at), self.filled(expected), self.filled(new));
                quote_spanned!(span=> #u.compare_swap(#rank, #index, #expected, #new)?)
            }
            Act::Load { section, .. } => {
                let index = self.index(section);
                quote_spanned!(span=> ::rma::private::load(#u, #index))
            }
            Act::Store { section, value } => {
                let (index, value) = (self.index(section), self.filled(value));
                quote_spanned!(span=> ::rma::private::store(#u, #index, #value))
            }
            Act::Update { section, operator, value } => {
                let (index, value) = (self.index(section), self.filled(value));
                // Names of the macro's own, which the program's expressions cannot mean.
                let [old, new] = ["old", "change"].map(|name| Ident::new(name, Span::mixed_site()));
                quote_spanned!(span=> {
                    let #new = #value;
                    ::rma::private::update(#u, #index, |#old| #old #operator #new)
                })
            }
            Act::Called(call) => self.filled(&Expr::MethodCall((**call).clone())).to_token_stream(),
            Act::Fence => quote_spanned!(span=> ::rma::private::next_phase(#u)),
            Act::Read { section, buffer } => {
                let (index, buffer) = (self.own_range(section), self.filled(buffer));
                quote_spanned!(span=> ::rma::private::read(#u, #index, &mut #buffer[..]))
            }
            Act::Write { section, buffer } => {
                let (index, buffer) = (self.own_range(section), self.filled(buffer));
                quote_spanned!(span=> ::rma::private::write(#u, #index, #buffer))
            }
        }
    }
}
