//! The borders between what a compiler may keep in registers and what others see in memory. Never touches a window.
//!
//! `docs/registers.md` has the reasons. Windows need none of the public functions: they are for plain memory that somebody
//! else reads or changes behind the compiler's back.
#![allow(unsafe_code)]

use std::arch::asm;
use std::ptr;

use super::primitive::{Ordering, compiler_fence, fence};

/// Stands before a synchronizing call: what this rank has stored is in memory when others are let in.
#[inline(always)]
pub(crate) fn before_call() {
    compiler_fence(Ordering::SeqCst);
    // Release: pairs with the Acquire fence of `after_call` on the ranks that synchronize with this one.
    fence(Ordering::Release);
}

/// Stands after a synchronizing call: what is loaded from here on is what others have stored before it.
#[inline(always)]
pub(crate) fn after_call() {
    // Acquire: pairs with the Release fence of `before_call` on the ranks that this one has synchronized with.
    fence(Ordering::Acquire);
    compiler_fence(Ordering::SeqCst);
}

/// Makes the compiler put `value` into memory here, as if something unknown read it.
///
/// For plain memory that others read: call it between the last store and the synchronization that lets them (see
/// `docs/registers.md`). Costs no instruction of its own.
#[inline(always)]
pub fn touch<T: ?Sized>(value: &T) {
    let address = ptr::from_ref(value).cast::<u8>();
    // SAFETY: - no instruction is executed and nothing is written; the compiler must assume that memory is read.
    unsafe { asm!("/* {0} */", in(reg) address, options(readonly, preserves_flags, nostack)) };
}

/// Makes the compiler forget what it knows of `value`, as if something unknown had changed it.
///
/// For plain memory that others change: call it between the synchronization after which they have, and the first load (see
/// `docs/registers.md`). Costs no instruction of its own.
#[inline(always)]
pub fn touch_mut<T: ?Sized>(value: &mut T) {
    let address = ptr::from_mut(value).cast::<u8>();
    // SAFETY: - no instruction is executed; the compiler must assume that memory is read and written, which it may be,
    //   through an exclusive reference.
    unsafe { asm!("/* {0} */", in(reg) address, options(preserves_flags, nostack)) };
}
