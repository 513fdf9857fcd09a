//! The promise that a type is plain data, and the macro that makes it for structures. Never trusts a structure: what the
//! promise needs is checked by the compiler, whoever writes the macro's name.
#![allow(unsafe_code)]

use super::shape::Shape;

/// A type that a window can hold: plain old data, of whose bytes others may write any pattern.
///
/// These are the basic types, [`Bool`](super::Bool), arrays of elements, and structures that derive it:
///
/// ```
/// /// A particle, as every rank sees it.
/// #[derive(Clone, Copy, rma::Element)]
/// #[repr(C)]
/// struct Particle {
///     position: [f64; 3],
///     kind: u32,
///     alive: rma::Bool,
///     unused: [u8; 3],
/// }
/// assert_eq!(size_of::<Particle>(), 32);
/// ```
///
/// A structure without a fixed order of its fields, with a field that is not plain data, or with padding does not compile:
///
/// ```compile_fail
/// #[derive(Clone, Copy, rma::Element)]
/// #[repr(C)]
/// struct Padded {
///     small: u32,
///     large: f64, // 4 bytes of padding stand before it
/// }
/// ```
///
/// Padding may be named as a field, as above. Where the layout must stay as it is (a structure of C code), `#[element(padded)]`
/// allows it: a transfer of such elements moves the fields one by one and leaves the padding of its destination alone.
/// What a view of the own part writes to padding is up to the compiler.
///
/// # Safety
///
/// Every pattern of bits in the bytes that `SHAPE` names is a value of the type, the other bytes are padding, the type is
/// not empty, and its alignment is at most 64.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an element of a window",
    label = "not known to be plain data",
    note = "elements are numbers, `rma::Bool`, arrays of elements, and structures with `#[derive(Clone, Copy, rma::Element)]` and `#[repr(C)]`"
)]
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// What the type is made of.
    #[doc(hidden)]
    const SHAPE: Shape;
}

/// The strictest alignment that an element can have: that of window memory.
#[doc(hidden)]
pub const ALIGNMENT_MAX: usize = 64;

macro_rules! basic_elements {
    ($($type:ty = $code:ident),* $(,)?) => {$(
        // SAFETY: - a number, or a byte of which every pattern is a value, without padding.
        unsafe impl Element for $type {
            const SHAPE: Shape = Shape::basic(super::BasicType::$code);
        }
    )*};
}

basic_elements!(
    i8 = I8,
    i16 = I16,
    i32 = I32,
    i64 = I64,
    u8 = U8,
    u16 = U16,
    u32 = U32,
    u64 = U64,
    f32 = F32,
    f64 = F64,
    super::Bool = Bool,
);

// SAFETY: - every element of the array is plain data, and arrays have no padding of their own; an empty one has no shape.
unsafe impl<T: Element, const N: usize> Element for [T; N] {
    const SHAPE: Shape = {
        assert!(0 < N, "an array without items can't be an element of a window");
        Shape::array(&T::SHAPE, N)
    };
}

/// Implements [`Element`] for a structure; `derive(Element)` writes it. Everything that the promise needs is checked here, so
/// writing it by hand with something else than the structure's fields does not compile.
#[doc(hidden)]
#[macro_export]
macro_rules! __plain_element {
    ($structure:ident, $padding:ident, { $($field:tt : $type:ty),+ $(,)? }) => {
        const _: () = {
            // All fields are named.
            #[allow(dead_code)]
            fn fields(it: $structure) {
                let $structure { $($field: _),+ } = it;
            }
            // Each has exactly the type that is said, and the type is an element.
            #[allow(dead_code)]
            fn types(it: &$structure) {
                fn exactly<T: $crate::Element>(_: *const T) {}
                $(exactly::<$type>(&raw const it.$field);)+
            }
            // SAFETY: - every field is an element, see `types`, and there are no others, see `fields`; hence every pattern of
            //   bits in them is a value, and all else is padding. - not empty: at least one field, and elements are not empty.
            unsafe impl $crate::Element for $structure {
                const SHAPE: $crate::private::Shape = {
                    let shape = $crate::private::Shape::structure(
                        ::core::stringify!($structure),
                        ::core::mem::size_of::<$structure>(),
                        &[$($crate::private::Member::new(
                            ::core::mem::offset_of!($structure, $field),
                            <$type as $crate::Element>::SHAPE,
                        )),+],
                    );
                    $crate::__plain_element!(padding $padding $structure shape);
                    ::core::assert!(
                        ::core::mem::align_of::<$structure>() <= $crate::private::ALIGNMENT_MAX,
                        ::core::concat!("`", ::core::stringify!($structure), "` is aligned to more than window memory is"),
                    );
                    shape
                };
            }
            // Now, not when the type is first used.
            const _: $crate::private::Shape = <$structure as $crate::Element>::SHAPE;
        };
    };
    (padding padded $structure:ident $shape:ident) => {};
    (padding dense $structure:ident $shape:ident) => {
        ::core::assert!(
            $shape.is_dense(),
            ::core::concat!(
                "`", ::core::stringify!($structure), "` has padding, whose bytes would carry whatever was in memory to other ",
                "ranks: name the padding as a field (`unused: [u8; 4]`), or write `#[element(padded)]` to have it left alone",
            ),
        );
    };
}

/// An element whose bytes are all zero, as new windows hold them.
pub(crate) fn zeroed<T: Element>() -> T {
    // SAFETY: - a value: every pattern of bits is one.
    unsafe { std::mem::zeroed() }
}
