//! A function with mistakes: the messages, and the original for the tools that go on in spite of them.
::core::compile_error! {
    "this accumulate goes to rank 1, which the epoch does not open\n  here: not among the ranks of the attribute\n  help: name the rank in the attribute, or use the rank that it names\n  rule: RMA-MAC-05 [rank_not_opened]"
}
::core::compile_error! {
    "this value is a promise inside the epoch and becomes `u64` with the UNLOCK that ends it\n  here: not yet a `u64`\n  help: drop the type (`let x = u.at(r)[i];`), return `Ok(x)`, and use what the function returns\n  rule: RMA-MAC-03 [pending_typed]"
}
#[allow(unexpected_cfgs, unused)]
fn mistaken(w: &Window<u64>) -> rma::Result<u64> {
    #[cfg(rust_analyzer)]
    {
        w.at(1)[0] += 1;
        let x: u64 = w.at(0)[0];
        Ok(x)
    }
    #[cfg(not(rust_analyzer))] { ::core::unreachable!() }
}
