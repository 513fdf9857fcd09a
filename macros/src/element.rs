//! `#[derive(Element)]`: which fields a structure has, handed to a macro of the runtime that proves the rest. Never promises
//! anything by itself: that every field is plain data and that no byte is padding is checked there, by the compiler.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::{Data, DeriveInput, Field, Fields, Index, Type};

use crate::messages::{self as say, Errors};

/// A structure that can be an element, as far as its text shows.
pub(crate) struct Plain {
    name: Ident,
    /// `dense` or `padded`: what the runtime's macro is told about padding.
    padding: Ident,
    /// Names or numbers, and types.
    fields: Vec<(TokenStream, Type)>,
}

/// Reads the item below the derive; errors go into the bag.
pub(crate) fn read(item: &DeriveInput, errors: &mut Errors) -> Option<Plain> {
    if !item.generics.params.is_empty() {
        errors.push(&item.generics, &say::ELEMENT_GENERIC, &[&item.ident]);
    }
    let padding = padding(item, errors);
    let fields = match &item.data {
        Data::Struct(data) if !data.fields.is_empty() => &data.fields,
        other => {
            let what = match other {
                Data::Struct(_) => "a structure without fields",
                Data::Enum(_) => "an enumeration",
                Data::Union(_) => "a union",
            };
            errors.push(&item.ident, &say::ELEMENT_KIND, &[&item.ident, &what]);
            return None;
        }
    };
    if !has_fixed_order(item) {
        errors.push(&item.ident, &say::ELEMENT_ORDER, &[&item.ident]);
    }
    for field in fields {
        field_type(field, &field.ty, errors);
    }
    Some(Plain { name: item.ident.clone(), padding, fields: named(fields) })
}

/// The call of the runtime's macro.
pub(crate) fn expand(plain: Plain) -> TokenStream {
    let Plain { name, padding, fields } = plain;
    let fields = fields.iter().map(|(field, ty)| quote!(#field: #ty));
    quote!(::rma::__plain_element!(#name, #padding, { #(#fields),* });)
}

fn named(fields: &Fields) -> Vec<(TokenStream, Type)> {
    let named = |(at, field): (usize, &Field)| {
        let name = match &field.ident {
            Some(name) => name.to_token_stream(),
            None => Index::from(at).to_token_stream(),
        };
        (name, field.ty.clone())
    };
    fields.iter().enumerate().map(named).collect()
}

/// Whether `repr` fixes the order of the fields.
fn has_fixed_order(item: &DeriveInput) -> bool {
    let mut fixed = false;
    for attribute in item.attrs.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        // What rustc does not understand there is rustc's to report.
        let _ = attribute.parse_nested_meta(|meta| {
            fixed |= meta.path.is_ident("C") || meta.path.is_ident("transparent");
            if meta.input.peek(syn::token::Paren) {
                let inside;
                syn::parenthesized!(inside in meta.input);
                inside.parse::<TokenStream>()?;
            }
            Ok(())
        });
    }
    fixed
}

/// What `#[element(…)]` says.
fn padding(item: &DeriveInput, errors: &mut Errors) -> Ident {
    let mut padding = Ident::new("dense", item.ident.span());
    for attribute in item.attrs.iter().filter(|attribute| attribute.path().is_ident("element")) {
        match attribute.parse_args::<Ident>() {
            Ok(option) if option == "padded" => padding = option,
            _ => errors.push(attribute, &say::ELEMENT_OPTION, &[]),
        }
    }
    padding
}

/// Refuses types whose values are not free bytes, where the text shows it; the others are refused by the trait.
fn field_type(field: &Field, ty: &Type, errors: &mut Errors) {
    match ty {
        Type::Reference(_) | Type::Ptr(_) => {
            errors.push(field, &say::ELEMENT_REFERENCE, &[&ty.to_token_stream()]);
        }
        Type::Path(path) if path.path.is_ident("bool") => errors.push(ty, &say::ELEMENT_BOOL, &[]),
        Type::Path(path) if path.path.is_ident("usize") || path.path.is_ident("isize") => {
            errors.push(ty, &say::ELEMENT_WORD, &[&ty.to_token_stream()]);
        }
        Type::Array(array) => field_type(field, &array.elem, errors),
        Type::Paren(inner) => field_type(field, &inner.elem, errors),
        _ => {}
    }
}
