//! The handshake that opens every connection: both sides show that they know the secret of the job, and neither sends it.
//! Never touches a socket.
//!
//! The side that connects sends a *hello*: who it is, whom it means, and a random number. The other one answers with a random
//! number of its own and a keyed hash over both, and the first proves itself by another hash over the same. All three have
//! fixed lengths, so a stranger can make the other side keep no more than a hello.
//!
//! The hashes are HMAC-SHA-256 under the secret. They have different labels and cover both random numbers and both names, so
//! none can be taken from one connection, or one direction, and used in another.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::frame::VERSION;

const MAGIC: [u8; 8] = *b"rma-tcp\0";
const NONCE_BYTES: usize = 32;
const HASH_BYTES: usize = 32;
const HELLO_NONCE: usize = 24;

pub(crate) const HELLO_BYTES: usize = HELLO_NONCE + NONCE_BYTES;
pub(crate) const ANSWER_BYTES: usize = NONCE_BYTES + HASH_BYTES;
pub(crate) const PROOF_BYTES: usize = HASH_BYTES;

const SECRET_BYTES: usize = 16;

/// What the processes of one job know and nobody else does: 128 random bits.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret([u8; SECRET_BYTES]);

impl Secret {
    /// A new secret.
    pub(crate) fn generate() -> std::io::Result<Secret> {
        random().map(Secret)
    }

    /// The secret as it stands in an environment.
    pub(crate) fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(crate) fn from_hex(text: &str) -> Option<Secret> {
        let mut bytes = [0; SECRET_BYTES];
        let digits = text.as_bytes();
        if digits.len() != 2 * SECRET_BYTES {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16);
            *byte = (digit(0)? * 16 + digit(1)?) as u8;
        }
        Some(Secret(bytes))
    }

    fn hash(&self, label: &str, hello: &[u8; HELLO_BYTES], nonce: &[u8]) -> Hmac<Sha256> {
        let mut mac = <Hmac<Sha256>>::new_from_slice(&self.0).expect("a key may have any length");
        mac.update(label.as_bytes());
        mac.update(hello);
        mac.update(nonce);
        mac
    }
}

/// A secret is not shown, whatever prints it.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Random bytes of the system.
fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes)
}

/// A side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Party {
    /// A rank of the job.
    Rank(u32),
    /// What tells ranks where the others are.
    Rendezvous,
}

impl Party {
    fn code(self) -> u32 {
        match self {
            Party::Rank(rank) => rank,
            Party::Rendezvous => u32::MAX,
        }
    }

    fn from_code(code: u32) -> Party {
        match code {
            u32::MAX => Party::Rendezvous,
            rank => Party::Rank(rank),
        }
    }
}

/// Why a handshake ends without a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is no handshake of this runtime.
    Foreign,
    /// It is one of another version.
    Version,
    /// It means somebody else.
    Misdirected,
    /// The other side does not know the secret.
    Secret,
}

/// The side that connects.
pub(crate) struct Caller {
    hello: [u8; HELLO_BYTES],
}

impl Caller {
    /// Begins a connection. The hello is to be sent.
    pub(crate) fn new(from: Party, to: Party) -> std::io::Result<(Caller, [u8; HELLO_BYTES])> {
        let mut hello = [0; HELLO_BYTES];
        hello[..8].copy_from_slice(&MAGIC);
        hello[8] = VERSION;
        hello[12..16].copy_from_slice(&from.code().to_le_bytes());
        hello[16..20].copy_from_slice(&to.code().to_le_bytes());
        hello[HELLO_NONCE..].copy_from_slice(&random::<NONCE_BYTES>()?);
        Ok((Caller { hello }, hello))
    }

    /// Checks the answer. The proof is to be sent; after it, frames.
    pub(crate) fn prove(
        self,
        secret: &Secret,
        answer: &[u8; ANSWER_BYTES],
    ) -> Result<[u8; PROOF_BYTES], Refused> {
        let (nonce, hash) = answer.split_at(NONCE_BYTES);
        // The comparison takes the same time wherever the hashes differ.
        let expected = secret.hash("rma answer", &self.hello, nonce);
        expected.verify_slice(hash).map_err(|_| Refused::Secret)?;
        Ok(secret.hash("rma proof", &self.hello, nonce).finalize().into_bytes().into())
    }
}

/// The side that was called, after the hello.
pub(crate) struct Callee {
    hello: [u8; HELLO_BYTES],
    nonce: [u8; NONCE_BYTES],
    from: Party,
}

impl Callee {
    /// Reads a hello that should mean `me`. The answer is to be sent.
    pub(crate) fn new(
        secret: &Secret,
        me: Party,
        hello: &[u8; HELLO_BYTES],
    ) -> Result<(Callee, [u8; ANSWER_BYTES]), Refused> {
        if hello[..8] != MAGIC {
            return Err(Refused::Foreign);
        }
        if hello[8] != VERSION {
            return Err(Refused::Version);
        }
        let code = |at: usize| u32::from_le_bytes([hello[at], hello[at + 1], hello[at + 2], hello[at + 3]]);
        if hello[9..12] != [0; 3] || hello[20..HELLO_NONCE] != [0; 4] {
            return Err(Refused::Foreign);
        }
        if Party::from_code(code(16)) != me {
            return Err(Refused::Misdirected);
        }
        // Without randomness there is no safe answer, and none is given.
        let nonce = random::<NONCE_BYTES>().map_err(|_| Refused::Secret)?;
        let mut answer = [0; ANSWER_BYTES];
        answer[..NONCE_BYTES].copy_from_slice(&nonce);
        answer[NONCE_BYTES..]
            .copy_from_slice(&secret.hash("rma answer", hello, &nonce).finalize().into_bytes());
        Ok((Callee { hello: *hello, nonce, from: Party::from_code(code(12)) }, answer))
    }

    /// Checks the proof and gives who the other side is.
    pub(crate) fn check(self, secret: &Secret, proof: &[u8; PROOF_BYTES]) -> Result<Party, Refused> {
        let expected = secret.hash("rma proof", &self.hello, &self.nonce);
        expected.verify_slice(proof).map_err(|_| Refused::Secret)?;
        Ok(self.from)
    }

    /// Who the other side says it is.
    pub(crate) fn claimed(&self) -> Party {
        self.from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: Party = Party::Rank(3);
    const PEER: Party = Party::Rank(1);

    fn shake(caller: &Secret, callee: &Secret) -> Result<Party, Refused> {
        let (calling, hello) = Caller::new(PEER, ME).unwrap();
        let (called, answer) = Callee::new(callee, ME, &hello)?;
        let proof = calling.prove(caller, &answer)?;
        called.check(callee, &proof)
    }

    #[test]
    fn who_knows_the_secret_gets_in() {
        let secret = Secret::generate().unwrap();
        assert_eq!(shake(&secret, &secret), Ok(PEER));
        let other = Secret::generate().unwrap();
        assert_eq!(shake(&secret, &other), Err(Refused::Secret));
        assert_ne!(secret, other);
    }

    #[test]
    fn a_caller_without_the_secret_is_not_let_in() {
        let secret = Secret::generate().unwrap();
        let (_, hello) = Caller::new(PEER, ME).unwrap();
        let (called, answer) = Callee::new(&secret, ME, &hello).unwrap();
        // The best that a stranger has: what the other side itself has sent.
        let mut proof = [0; PROOF_BYTES];
        proof.copy_from_slice(&answer[NONCE_BYTES..]);
        assert_eq!(called.check(&secret, &proof), Err(Refused::Secret));
    }

    #[test]
    fn a_proof_is_good_for_one_connection() {
        let secret = Secret::generate().unwrap();
        let (calling, hello) = Caller::new(PEER, ME).unwrap();
        let (called, answer) = Callee::new(&secret, ME, &hello).unwrap();
        let proof = calling.prove(&secret, &answer).unwrap();
        assert_eq!(called.check(&secret, &proof), Ok(PEER));
        let (again, _) = Callee::new(&secret, ME, &hello).unwrap();
        assert_eq!(again.check(&secret, &proof), Err(Refused::Secret), "a recorded proof");
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        let secret = Secret::generate().unwrap();
        let (_, hello) = Caller::new(PEER, ME).unwrap();
        for bit in 0..8 * HELLO_BYTES {
            let sent = Caller { hello };
            let mut arrived = hello;
            arrived[bit / 8] ^= 1 << (bit % 8);
            match Callee::new(&secret, ME, &arrived) {
                Err(_) => {}
                Ok((_, answer)) => {
                    assert_eq!(sent.prove(&secret, &answer), Err(Refused::Secret), "bit {bit}")
                }
            }
        }
    }

    #[test]
    fn strangers_are_told_apart() {
        let secret = Secret::generate().unwrap();
        let (_, hello) = Caller::new(PEER, ME).unwrap();
        let with = |at: usize, value: u8| {
            let mut hello = hello;
            hello[at] = value;
            Callee::new(&secret, ME, &hello).err()
        };
        assert_eq!(with(0, b'G'), Some(Refused::Foreign));
        assert_eq!(with(8, VERSION + 1), Some(Refused::Version));
        assert_eq!(with(16, 9), Some(Refused::Misdirected));
        assert_eq!(with(20, 1), Some(Refused::Foreign));
    }

    #[test]
    fn secrets_survive_the_environment() {
        let secret = Secret::generate().unwrap();
        assert_eq!(Secret::from_hex(&secret.to_hex()), Some(secret.clone()));
        assert_eq!(Secret::from_hex(""), None);
        assert_eq!(Secret::from_hex(&"g".repeat(32)), None);
        assert_eq!(Secret::from_hex(&"0".repeat(33)), None);
        assert!(!format!("{secret:?}").contains(&secret.to_hex()));
    }
}
