//! The crates can be published, and the files that lead into the repository are right.

use std::fs;
use std::path::{Path, PathBuf};

use toml::Table;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The manifests of the crates that are published, each with its folder.
fn published() -> Vec<(String, Table)> {
    let crates = fs::read_dir(root().join("crates")).unwrap();
    let mut found: Vec<_> = crates
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .map(|name| (name.clone(), read(&format!("crates/{name}/Cargo.toml")).parse().unwrap()))
        .filter(|(_, manifest): &(_, Table)| {
            manifest["package"].get("publish").and_then(|publish| publish.as_bool()) != Some(false)
        })
        .collect();
    found.sort_by(|(one, _), (two, _)| one.cmp(two));
    assert!(found.len() > 10);
    found
}

#[test]
fn every_published_crate_says_what_it_is() {
    for (folder, manifest) in published() {
        let package = &manifest["package"];
        let name = package["name"].as_str().unwrap();
        let readme = read(&format!("crates/{folder}/README.md"));
        let begins = if folder == "playfield" { "# Playfield\n" } else { &format!("# {name}\n") };
        assert!(readme.starts_with(begins), "the README of {name} does not begin with {begins:?}");
        // Copies, since a package has only what is in its folder, and not every checkout keeps links.
        for license in ["LICENSE-APACHE", "LICENSE-MIT"] {
            assert_eq!(read(&format!("crates/{folder}/{license}")), read(license), "{name}");
        }
        assert!(package["description"].as_str().is_some_and(|text| text.len() > 10), "{name}");
        assert!(package["license"]["workspace"].as_bool() == Some(true), "{name}");
        let expected = format!("https://docs.rs/{name}");
        assert_eq!(package["documentation"].as_str(), Some(&*expected));
        // The limits of Rust's registry.
        for list in ["categories", "keywords"] {
            let words = package[list].as_array().unwrap_or_else(|| panic!("{name}: {list}"));
            assert!((1..=5).contains(&words.len()), "{name}: {list}");
        }
        for word in package["keywords"].as_array().unwrap() {
            assert!(word.as_str().is_some_and(|word| word.len() <= 20), "{name}: {word:?}");
        }
    }
}

/// Cargo leaves these out of a package. One with a version would have to be published first, by a
/// crate that needs this one.
#[test]
fn dev_dependencies_on_each_other_have_a_path_alone() {
    for (folder, manifest) in published() {
        let Some(needed) = manifest.get("dev-dependencies").and_then(|needed| needed.as_table())
        else {
            continue;
        };
        for (name, how) in needed.iter().filter(|(name, _)| name.starts_with("playfield")) {
            let is_path = how.get("path").is_some() && how.get("version").is_none();
            assert!(
                is_path,
                "{folder}: {name} = {{ path = \"…\" }}, without a version or `workspace`"
            );
        }
    }
}

/// Maturin does so for wheels; `sdk/cpp/tests/package.cmake` checks what CMake installs.
#[test]
fn the_python_wheel_is_stripped() {
    let project: Table = read("sdk/python/pyproject.toml").parse().unwrap();
    assert_eq!(project["tool"]["maturin"]["strip"].as_bool(), Some(true));
}

#[test]
fn the_readme_has_the_steps_that_the_script_follows() {
    let readme = read("README.md");
    let (_, section) = readme.split_once("\n## Your first game\n").expect("the section");
    let (_, block) = section.split_once("```sh\n").expect("its steps");
    let (steps, _) = block.split_once("```").unwrap();
    // `scripts/first-game` reads them from there, and knows how to follow these.
    let expected = [
        "cargo install --locked --path playfield/crates/playfield",
        "playfield new my-game --template arena",
        "cd my-game",
        "playfield dev",
    ];
    assert_eq!(steps.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn the_links_of_llms_txt_lead_to_files() {
    let text = read("llms.txt");
    let links: Vec<&str> =
        text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert!(links.len() > 10);
    for link in links {
        assert!(root().join(link).exists(), "llms.txt: there is no {link}");
    }
}
