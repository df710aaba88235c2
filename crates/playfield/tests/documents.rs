//! The links of the documents lead somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_link_leads_to_a_file_and_every_anchor_to_a_heading() {
    let documents = documents();
    assert!(documents.len() > 10, "too few documents: {:?}", documents.keys());
    let mut dead = Vec::new();
    for (path, text) in &documents {
        for link in links(text) {
            if let Err(why) = follow(&documents, path, &link) {
                dead.push(format!("{}: {link}: {why}", path.display()));
            }
        }
    }
    assert!(dead.is_empty(), "\n{}\n", dead.join("\n"));
}

#[test]
fn a_dead_link_is_found() {
    let here = root().join("docs/here.md");
    let text = "# A `b`: c_d, é!\n## Again\n## Again\n```\n# no heading [no](link.md)\n```\n";
    let documents = BTreeMap::from([(here.clone(), text.to_owned())]);
    let follow = |link: &str| follow(&documents, &here, link);
    for link in ["#a-b-c_d-é", "#again-1", "here.md#again", "../Cargo.toml", "https://x.org/#y"] {
        assert_eq!(follow(link), Ok(()), "{link}");
    }
    assert_eq!(follow("#again-2"), Err("no heading has this anchor".to_owned()));
    assert_eq!(follow("#no-heading-nolinkmd"), Err("no heading has this anchor".to_owned()));
    assert_eq!(follow("there.md"), Err("there is no such file".to_owned()));
    assert_eq!(follow("../Cargo.toml#x"), Err("only documents have anchors".to_owned()));
}

#[test]
fn links_are_found_wherever_they_stand_and_not_in_code() {
    let text = "[a](b.md), ([two\nlines](#c)) `[no](d)` ![e](f.png)\n~~~\n[no](g)\n~~~\n\
                | [h](i.md#j) |\n[k]: l.md\n`` [no](`m`) ``\n";
    assert_eq!(links(text), ["b.md", "#c", "f.png", "i.md#j", "l.md"]);
}

/// Checks that a link in the document at `from` leads somewhere.
fn follow(documents: &BTreeMap<PathBuf, String>, from: &Path, link: &str) -> Result<(), String> {
    if link.starts_with("https://") || link.starts_with("http://") || link.starts_with("mailto:") {
        return Ok(());
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let mut target = from.to_owned();
    if !path.is_empty() {
        target.pop();
        for part in path.split('/') {
            match part {
                ".." => _ = target.pop(),
                "." | "" => {}
                part => target.push(part),
            }
        }
    }
    if !documents.contains_key(&target) && !target.exists() {
        return Err("there is no such file".into());
    }
    if anchor.is_empty() {
        return Ok(());
    }
    let text = documents.get(&target).ok_or("only documents have anchors")?;
    if !anchors(text).contains(anchor) {
        return Err("no heading has this anchor".into());
    }
    Ok(())
}

/// The targets of all links: `[text](target)` and `[name]: target`.
fn links(text: &str) -> Vec<String> {
    let text = without_code(text);
    let mut links = Vec::new();
    for line in text.split_inclusive('\n') {
        let mut rest = line;
        while let Some((_, after)) = rest.split_once("](") {
            let (target, after) = after.split_once(')').unwrap_or((after, ""));
            // A title may follow.
            links.extend(target.split_whitespace().next().map(str::to_owned));
            rest = after;
        }
        if let Some((_, target)) = line.strip_prefix('[').and_then(|line| line.split_once("]: ")) {
            links.push(target.trim().to_owned());
        }
    }
    links
}

/// The anchors of a document, as GitHub makes them of its headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut fence = None;
    for line in text.lines() {
        if is_code(line, &mut fence) {
            continue;
        }
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let anchor: String = heading
            .trim()
            .to_lowercase()
            .chars()
            .filter(|character| character.is_alphanumeric() || " -_".contains(*character))
            .map(|character| if character == ' ' { '-' } else { character })
            .collect();
        let mut unique = anchor.clone();
        let mut number = 0;
        while !anchors.insert(unique.clone()) {
            number += 1;
            unique = format!("{anchor}-{number}");
        }
    }
    anchors
}

/// The text without code blocks, and without code in its lines.
fn without_code(text: &str) -> String {
    let mut fence = None;
    let prose: Vec<&str> = text.lines().filter(|line| !is_code(line, &mut fence)).collect();
    let prose = prose.join("\n");
    let (mut rest, mut kept) = (prose.as_str(), String::new());
    while let Some(at) = rest.find('`') {
        kept += &rest[..at];
        let length = rest[at..].len() - rest[at..].trim_start_matches('`').len();
        let (ticks, after) = rest[at..].split_at(length);
        rest = after.split_once(ticks).map_or(after, |(_, after)| after);
    }
    kept + rest
}

/// Whether a line belongs to a code block; `fence` is what the open one began with.
fn is_code(line: &str, fence: &mut Option<&'static str>) -> bool {
    let line = line.trim_start();
    match *fence {
        Some(open) => {
            if line.starts_with(open) {
                *fence = None;
            }
            true
        }
        None => {
            *fence = ["```", "~~~"].into_iter().find(|fence| line.starts_with(fence));
            fence.is_some()
        }
    }
}

/// The text of every document by its path: those at the root, all under `docs`, and those that an
/// SDK begins with.
fn documents() -> BTreeMap<PathBuf, String> {
    let mut folders = vec![root().join("docs")];
    let mut paths = markdown(&root());
    let sdks = entries(&root().join("sdk")).into_iter().filter(|path| path.is_dir());
    paths.extend(sdks.flat_map(|sdk| markdown(&sdk)));
    paths.extend(markdown(&root().join("conformance")));
    while let Some(folder) = folders.pop() {
        paths.extend(markdown(&folder));
        folders.extend(entries(&folder).into_iter().filter(|path| path.is_dir()));
    }
    paths
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path);
            let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (path, text)
        })
        .collect()
}

fn markdown(folder: &Path) -> Vec<PathBuf> {
    let is_markdown = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    entries(folder).into_iter().filter(is_markdown).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("a readable folder").path()).collect()
}

/// The root of the repository.
fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository")
}
