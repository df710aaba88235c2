//! The crates, and the modules of a shard, follow the tables of layers in `docs/architecture.md`,
//! which these tests read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use toml::Table;

const DRAWING: &str = "docs/architecture.md";

/// Allowed imports within one layer: the derive macros belong to the trait they implement, and some
/// methods of the shard are in files of their own.
const MAY_IMPORT_BESIDE: &[(&str, &str)] = &[
    ("state", "derive"),
    ("reading", "mod"),
    ("messages", "mod"),
    ("working", "mod"),
    ("dispatch", "mod"),
];

/// The folder of the modules of a shard.
const SHARD: &str = "crates/server/src/shard";

/// Crates that set their own lints, and so may contain `unsafe` code.
const SET_OWN_LINTS: &[&str] = &["ffi"];

#[test]
fn every_crate_has_a_layer_and_every_layer_its_crates() {
    let layers = drawn_layers("crate");
    let crates = crates();

    let drawn: BTreeSet<_> = layers.keys().collect();
    let built: BTreeSet<_> = crates.keys().collect();

    let missing: Vec<_> = built.difference(&drawn).collect();
    assert!(
        missing.is_empty(),
        "{missing:?} have no row in the table of layers: add one to {DRAWING}"
    );
    let gone: Vec<_> = drawn.difference(&built).collect();
    assert!(gone.is_empty(), "{gone:?} are not under crates/: remove their rows from {DRAWING}");
}

#[test]
fn crates_import_only_from_layers_below() {
    let crates = crates();
    let names = names_by_package(&crates);
    let root = manifest(&root());

    let imports: BTreeMap<_, _> = crates
        .iter()
        .map(|(name, manifest)| {
            let imported = imported_packages(manifest, &root);
            (
                name.clone(),
                imported.iter().filter_map(|package| names.get(package).cloned()).collect(),
            )
        })
        .collect();

    let breaches = breaches(&drawn_layers("crate"), &imports);
    assert!(breaches.is_empty(), "\n{}\n", breaches.join("\n"));
}

#[test]
fn modules_of_a_shard_import_only_from_layers_below() {
    let layers = drawn_layers("module");
    let imports = modules_of_a_shard();

    let drawn: BTreeSet<_> = layers.keys().collect();
    let there: BTreeSet<_> = imports.keys().collect();
    assert_eq!(there, drawn, "the modules in {SHARD}, and those in the table of {DRAWING}");

    let breaches = breaches(&layers, &imports);
    assert!(breaches.is_empty(), "\n{}\n", breaches.join("\n"));
}

#[test]
fn imports_of_modules_are_found_wherever_they_are_written() {
    let source = "use crate::shard::keys::Seat;\nuse crate::shard::{Shard, mail::Act};\n\
        // crate::shard::comment\nfn f() -> crate::shard::rooms::Room {}\n\
        #[cfg(test)]\nmod tests {\n    use crate::shard::services::Services;\n}\n";
    let expected = ["keys", "mail", "mod", "rooms"].map(String::from);
    assert_eq!(imported_modules(source), BTreeSet::from(expected));
}

#[test]
fn every_package_inherits_the_lints() {
    let root_manifest = manifest(&root());
    let unsafe_code = &root_manifest["workspace"]["lints"]["rust"]["unsafe_code"];
    assert_eq!(
        unsafe_code.as_str(),
        Some("forbid"),
        "the workspace's lints must forbid unsafe code"
    );

    let small_examples = ("examples".to_owned(), manifest(&root().join("examples")));
    let examples = packages_in("examples").into_iter().chain([small_examples]);
    let examples = examples.chain(packages_in("conformance"));
    for (name, manifest) in packages_in("crates").into_iter().chain(examples) {
        let inherits =
            manifest.get("lints").and_then(|lints| lints.get("workspace")?.as_bool()) == Some(true);
        let excepted = SET_OWN_LINTS.contains(&name.as_str());
        assert!(
            inherits || excepted,
            "{name} does not inherit the workspace's lints: add `[lints]` and `workspace = true` to its Cargo.toml"
        );
        assert!(!(inherits && excepted), "{name} inherits the lints: remove it from SET_OWN_LINTS");
    }
}

#[test]
fn every_test_file_is_part_of_its_crates_test_binary() {
    for (name, manifest) in crates() {
        let is_one_binary =
            manifest["package"].get("autotests").and_then(|autotests| autotests.as_bool())
                == Some(false);
        if !is_one_binary {
            continue;
        }
        let folder = root().join("crates").join(&name).join("tests");
        let main = read(&folder.join("main.rs"));
        for entry in fs::read_dir(&folder).expect("a folder of tests") {
            let path = entry.expect("a readable folder").path();
            let module = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            assert!(
                module == "main"
                    || path.extension().is_none_or(|extension| extension != "rs")
                    || main.lines().any(|line| line == format!("mod {module};")),
                "{} would not run: add `mod {module};` to main.rs beside it",
                path.display()
            );
        }
    }
}

#[test]
fn lint_checks_every_feature_that_default_builds_leave_out() {
    let makefile = read(&root().join("Makefile"));
    let clippy = "\tcargo clippy --workspace --all-features --all-targets -- -D warnings";
    assert!(makefile.lines().any(|line| line == clippy), "make lint runs{clippy}");
}

#[test]
fn a_violation_names_both_crates_their_layers_and_the_fix() {
    let layers = layers(&[("state", 2), ("derive", 2), ("room", 3), ("server", 4), ("client", 4)]);

    let sound =
        imports(&[("state", &["derive"]), ("room", &["state", "derive"]), ("server", &["room"])]);
    assert_eq!(breaches(&layers, &sound), Vec::<String>::new());

    for (importer, imported, upper, lower) in
        [("room", "server", 3, 4), ("client", "server", 4, 4), ("derive", "state", 2, 2)]
    {
        let found = breaches(&layers, &imports(&[(importer, &[imported])]));
        let [breach] = &found[..] else { panic!("{importer} imports {imported}: {found:?}") };
        let opening = format!("`{importer}` (layer {upper}) imports `{imported}` (layer {lower})");
        assert!(breach.starts_with(&opening), "{breach}");
        assert!(breach.contains("move what both need"), "{breach}");
    }
}

#[test]
fn imports_are_found_wherever_a_manifest_declares_them() {
    let root: Table = "
        [workspace.dependencies]
        playfield-wire = { path = 'crates/wire' }
        cells = { path = 'crates/state', package = 'playfield-state' }
    "
    .parse()
    .expect("a manifest");
    let package: Table = "
        [dependencies]
        cells.workspace = true
        maybe = { path = '../room', package = 'playfield-room', optional = true }
        log = '0.4'
        [target.'cfg(unix)'.dependencies]
        playfield-wire.workspace = true
        [build-dependencies]
        playfield-derive = { path = '../derive' }
        [dev-dependencies]
        playfield-server = { path = '../server' }
    "
    .parse()
    .expect("a manifest");

    let expected =
        ["log", "playfield-derive", "playfield-room", "playfield-state", "playfield-wire"]
            .map(String::from);
    assert_eq!(imported_packages(&package, &root), BTreeSet::from(expected));
}

#[test]
fn the_table_is_found_by_its_header() {
    let drawing = "| word | meaning |\n|---|---|\n| `x` | 9 |\n\n\
        | layer | crate | its work |\n|---|---|---|\n| 1 | `wire` | `bytes` |\n| 2 | `state`, `derive` | |\n\nend | 3 | `no` |\n";
    let table = |drawing| table_of_layers(drawing, "crate");
    assert_eq!(table(drawing), Ok(layers(&[("wire", 1), ("state", 2), ("derive", 2)])));
    assert!(table_of_layers(drawing, "module").is_err());

    let twice = "| layer | crate |\n|---|---|\n| 1 | `wire` |\n| 2 | `wire` |\n";
    assert_eq!(table(twice), Err("`wire` is on two layers".to_owned()));
    assert!(table("| word | meaning |\n").is_err());
    assert!(table("| layer | crate |\n|---|---|\n| first | `wire` |\n").is_err());
    assert!(table("| layer | crate |\n|---|---|\n| 1 | wire |\n").is_err());
}

/// One sentence for each import that does not go to a lower layer.
fn breaches(
    layers: &BTreeMap<String, u32>,
    imports: &BTreeMap<String, BTreeSet<String>>,
) -> Vec<String> {
    let mut breaches = Vec::new();
    for (importer, imported) in imports {
        for imported in imported {
            // Another test reports a crate without a layer.
            let (Some(&own), Some(&other)) = (layers.get(importer), layers.get(imported)) else {
                continue;
            };
            let beside =
                own == other && MAY_IMPORT_BESIDE.contains(&(importer.as_str(), imported.as_str()));
            if other >= own && !beside {
                breaches.push(format!(
                    "`{importer}` (layer {own}) imports `{imported}` (layer {other}), but imports go down: \
                     move what both need to a layer below {own}, or let a caller above pass it \
                     to `{importer}`; {DRAWING} draws the layers"
                ));
            }
        }
    }
    breaches
}

/// The layers in the document, of crates or modules: name and layer.
fn drawn_layers(of: &str) -> BTreeMap<String, u32> {
    let drawing = read(&root().join(DRAWING));
    table_of_layers(&drawing, of)
        .unwrap_or_else(|problem| panic!("the table of layers in {DRAWING}: {problem}"))
}

/// Reads the table whose first two columns are `layer` and `of`.
fn table_of_layers(drawing: &str, of: &str) -> Result<BTreeMap<String, u32>, String> {
    let mut rows =
        drawing.lines().map(cells).skip_while(|cells| !cells.starts_with(&["layer", of]));
    rows.next().ok_or(format!("there is no table headed `| layer | {of} |`"))?;

    let mut layers = BTreeMap::new();
    for row in rows.skip(1).take_while(|cells| !cells.is_empty()) {
        let (layer, crates) = (row[0], row.get(1).copied().unwrap_or_default());
        let layer = layer.parse().map_err(|_| format!("`{layer}` is not a layer number"))?;
        let names: Vec<_> = crates.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            return Err(format!("the row of layer {layer} names no {of} in `code`"));
        }
        for name in names {
            if layers.insert(name.to_owned(), layer).is_some() {
                return Err(format!("`{name}` is on two layers"));
            }
        }
    }
    Ok(layers)
}

/// The cells of one row; none if the line is not in a table.
fn cells(line: &str) -> Vec<&str> {
    let row = line.trim().strip_prefix('|').and_then(|row| row.strip_suffix('|'));
    row.map(|row| row.split('|').map(str::trim).collect()).unwrap_or_default()
}

/// All packages that are built into this one: everything but its dev-dependencies.
fn imported_packages(manifest: &Table, root: &Table) -> BTreeSet<String> {
    let targets = manifest.get("target").and_then(|targets| targets.as_table());
    let sections =
        targets.into_iter().flat_map(Table::values).filter_map(|target| target.as_table());
    std::iter::once(manifest)
        .chain(sections)
        .flat_map(|section| ["dependencies", "build-dependencies"].map(|kind| section.get(kind)))
        .filter_map(|dependencies| dependencies?.as_table())
        .flatten()
        .map(|(key, dependency)| {
            let inherited = root["workspace"].get("dependencies").and_then(|all| all.get(key));
            let renamed = [Some(dependency), inherited]
                .into_iter()
                .find_map(|entry| entry?.get("package")?.as_str());
            renamed.unwrap_or(key).to_owned()
        })
        .collect()
}

/// The modules of a shard, and which of the others each imports.
fn modules_of_a_shard() -> BTreeMap<String, BTreeSet<String>> {
    let folder = root().join(SHARD);
    let mut imports: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for path in sources(&folder) {
        let first = path.strip_prefix(&folder).expect("below the folder").iter().next();
        let module = first.expect("a file").to_string_lossy().trim_end_matches(".rs").to_owned();
        let imported = imports.entry(module.clone()).or_default();
        imported.extend(imported_modules(&read(&path)));
        imported.remove(&module);
    }
    // It is made of all.
    imports.insert("mod".to_owned(), BTreeSet::new());
    imports
}

/// The Rust files in a folder and below, without those of tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() && !path.ends_with("tests") {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// The modules of a shard that a source names, without its tests. `mod` is the shard's own.
fn imported_modules(source: &str) -> BTreeSet<String> {
    const ROOT: &str = "crate::shard::";
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let code = code.lines().filter(is_code).collect::<Vec<_>>().join("\n");
    let module = |path: &str| {
        let is_end = |letter: char| !letter.is_alphanumeric() && letter != '_';
        let name = path.trim().split(is_end).next().unwrap_or_default();
        let is_item = name.starts_with(|letter: char| letter.is_uppercase());
        if is_item { "mod".to_owned() } else { name.to_owned() }
    };
    let named = code.split(ROOT).skip(1).flat_map(|path| match path.strip_prefix('{') {
        Some(group) => group.split('}').next().unwrap_or_default().split(',').map(module).collect(),
        None => vec![module(path)],
    });
    named.filter(|name| !name.is_empty()).collect()
}

/// Every crate of the workspace by the name of its folder.
fn crates() -> BTreeMap<String, Table> {
    let crates = packages_in("crates");
    assert!(crates.contains_key("playfield"), "no crates found under {}", root().display());
    crates
}

/// Package name to folder name.
fn names_by_package(crates: &BTreeMap<String, Table>) -> BTreeMap<String, String> {
    let package = |manifest: &Table| manifest["package"]["name"].as_str().map(str::to_owned);
    crates.iter().filter_map(|(name, manifest)| Some((package(manifest)?, name.clone()))).collect()
}

/// The manifests in the subfolders of a folder; none if the folder does not exist.
fn packages_in(folder: &str) -> BTreeMap<String, Table> {
    let Ok(entries) = fs::read_dir(root().join(folder)) else { return BTreeMap::new() };
    entries
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.join("Cargo.toml").is_file())
        .map(|path| {
            (path.file_name().unwrap_or_default().to_string_lossy().into_owned(), manifest(&path))
        })
        .collect()
}

fn manifest(folder: &Path) -> Table {
    let path = folder.join("Cargo.toml");
    read(&path).parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn layers(layers: &[(&str, u32)]) -> BTreeMap<String, u32> {
    layers.iter().map(|&(name, layer)| (name.to_owned(), layer)).collect()
}

fn imports(imports: &[(&str, &[&str])]) -> BTreeMap<String, BTreeSet<String>> {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    imports.iter().map(|&(name, imported)| (name.to_owned(), owned(imported))).collect()
}
