//! The games that `new` writes.

/// A game.
pub(crate) struct Template {
    pub(crate) name: &'static str,
    /// One sentence for its README.
    pub(crate) about: &'static str,
    /// Its files besides the manifest, each with its path.
    pub(crate) files: &'static [(&'static str, &'static str)],
}

/// The manifest of all of them.
pub(crate) const MANIFEST: &str = include_str!("../../../templates/Cargo.toml.in");

macro_rules! files {
    ($($path:literal from $source:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../templates/", $source)))),*]
    };
}

/// All of them; the first is the default.
pub(crate) const TEMPLATES: &[Template] = &[
    Template {
        name: "counter",
        about: "A number that everyone sees and anyone may change.",
        files: files![
            ".gitignore" from "gitignore",
            "README.md" from "README.md",
            "clippy.toml" from "clippy.toml",
            "src/main.rs" from "counter/src/main.rs",
            "web/index.html" from "counter/web/index.html",
            "web/style.css" from "counter/web/style.css",
        ],
    },
    Template {
        name: "cards",
        about: "A duel of cards for two: each player sees only their own hand.",
        files: files![
            ".gitignore" from "gitignore",
            "README.md" from "README.md",
            "clippy.toml" from "clippy.toml",
            "src/main.rs" from "cards/src/main.rs",
            "web/index.html" from "cards/web/index.html",
            "web/style.css" from "cards/web/style.css",
        ],
    },
    Template {
        name: "arena",
        about: "Ships that fly to sparks, with bots: each player sees the sparks that are near.",
        files: files![
            ".gitignore" from "gitignore",
            "README.md" from "README.md",
            "clippy.toml" from "clippy.toml",
            "src/main.rs" from "arena/src/main.rs",
            "web/arena.js" from "arena/web/arena.js",
            "web/index.html" from "arena/web/index.html",
            "web/motion.js" from "arena/web/motion.js",
            "web/style.css" from "arena/web/style.css",
        ],
    },
    Template {
        name: "react",
        about: "A number that everyone sees and anyone may change, with a page in React.",
        files: files![
            ".gitignore" from "react/gitignore",
            "README.md" from "react/README.md",
            "src/main.rs" from "react/src/main.rs",
            "web/index.html" from "react/web/index.html",
            "web/package.json" from "react/web/package.json",
            "web/src/App.tsx" from "react/web/src/App.tsx",
            "web/src/client.ts" from "react/web/src/client.ts",
            "web/src/main.tsx" from "react/web/src/main.tsx",
            "web/src/style.css" from "react/web/src/style.css",
            "web/tsconfig.json" from "react/web/tsconfig.json",
            "web/vite.config.ts" from "react/web/vite.config.ts",
        ],
    },
];
