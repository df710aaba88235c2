//! Files that a node serves to browsers, bundled from TypeScript by `build.rs`: the client, from
//! `sdk/typescript`, and the page of the console, from `console`.

/// A file in the folder that `build.rs` names.
macro_rules! file {
    ($path:literal) => {
        include_str!(concat!(env!("PLAYFIELD_WEB"), "/", $path))
    };
}

/// The browser client: a JavaScript module without dependencies.
pub const CLIENT: &str = file!("client/playfield.js");

/// The module that [`CLIENT`] loads for the format `packed`.
pub const CLIENT_PACKED: &str = file!("client/playfield-packed.js");

/// The page of the console.
pub const CONSOLE_PAGE: &str = file!("console/index.html");

/// The script of the console's page.
pub const CONSOLE_SCRIPT: &str = file!("console/console.js");

/// The style of the console's page.
pub const CONSOLE_STYLE: &str = file!("console/console.css");
