//! The names that locks have elsewhere are found in the documentation, and are no names of this library. Never looks at what the
//! calls do.
#![allow(missing_docs)]

use std::path::Path;

/// The item that each alias leads to, the file it stands in, and the aliases.
const ALIASES: [(&str, &str, &[&str]); 4] = [
    ("pub fn lock<", "src/epoch/lock.rs", &["LOCK", "RMA_LOCK", "WINDOWLOCK", "WIN_LOCK"]),
    ("pub fn unlock(", "src/epoch/lock.rs", &["UNLOCK", "RMA_UNLOCK", "WINDOWUNLOCK", "WIN_UNLOCK"]),
    ("Exclusive,", "src/window/raw/admission.rs", &["EXCLUSIVE", "LOCK_EXCLUSIVE"]),
    ("Shared,", "src/window/raw/admission.rs", &["SHARED", "LOCK_SHARED"]),
];

fn source(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("the sources are there")
}

// covers: RMA-LOCK-15
#[test]
fn other_spellings_lead_to_the_one_name() {
    for (item, path, aliases) in ALIASES {
        let text = source(path);
        let (above, _) = text.split_once(item).unwrap_or_else(|| panic!("{path} has no `{item}`"));
        // The documentation and the attributes of the item: the lines above it up to the end of what stands before.
        let own: Vec<&str> = above
            .lines()
            .rev()
            .skip(1)
            .map(str::trim)
            .take_while(|line| line.starts_with("///") || line.starts_with("#["))
            .collect();
        let attribute = own.iter().find(|line| line.starts_with("#[doc(alias(")).unwrap_or(&"");
        let text: String = own.iter().filter(|line| line.starts_with("///")).copied().collect();
        for alias in aliases {
            assert!(attribute.contains(&format!("\"{alias}\"")), "{item} has no alias {alias}");
            assert!(text.contains(alias), "the documentation of {item} does not say {alias}");
        }
    }
}

#[test]
fn an_alias_is_no_second_name() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the sources are there") {
            let path = entry.expect("the sources are readable").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("sources are text");
            for name in ["win_lock", "rma_lock", "window_lock", "windowlock", "lock_exclusive", "lock_shared"]
            {
                for way in ["fn ", "as ", "type ", "const "] {
                    let wrong = format!("{way}{name}");
                    assert!(!text.to_lowercase().contains(&wrong), "{}: {wrong}", path.display());
                }
            }
        }
    }
}
