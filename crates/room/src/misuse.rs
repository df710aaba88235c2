//! What the compiler refuses. Each example differs in one thing from this one, which it takes:
//!
//! ```
//! use playfield_room::*;
//! use playfield_state::{Map, State};
//! #[derive(State, Default)]
//! struct Table {
//!     #[sync(owner)]
//!     hands: Map<PlayerId, u32>,
//! }
//! #[derive(Message)]
//! struct Draw;
//! #[derive(Message)]
//! struct Dealt;
//! mod other {
//!     #[derive(playfield_room::Message)]
//!     pub struct Draw;
//! }
//! #[room(messages(Draw), events(Dealt))]
//! impl Room for Table {
//!     fn tick(&mut self, cx: &mut Context<Self>) {
//!         cx.emit(&Dealt);
//!     }
//! }
//! impl Handle<Draw> for Table {
//!     fn handle(&mut self, _: Draw, _: &Player, _: &mut Context<Self>) -> Result<()> {
//!         Ok(())
//!     }
//! }
//! ```
//!
//! A declared message must be handled.
//!
//! ```compile_fail
//! use playfield_room::*;
//! use playfield_state::{Map, State};
//! #[derive(State, Default)]
//! struct Table {
//!     #[sync(owner)]
//!     hands: Map<PlayerId, u32>,
//! }
//! #[derive(Message)]
//! struct Draw;
//! #[derive(Message)]
//! struct Dealt;
//! mod other {
//!     #[derive(playfield_room::Message)]
//!     pub struct Draw;
//! }
//! #[room(messages(Draw), events(Dealt))]
//! impl Room for Table {
//!     fn tick(&mut self, cx: &mut Context<Self>) {
//!         cx.emit(&Dealt);
//!     }
//! }
//! ```
//!
//! An event must be declared.
//!
//! ```compile_fail
//! use playfield_room::*;
//! use playfield_state::{Map, State};
//! #[derive(State, Default)]
//! struct Table {
//!     #[sync(owner)]
//!     hands: Map<PlayerId, u32>,
//! }
//! #[derive(Message)]
//! struct Draw;
//! #[derive(Message)]
//! struct Dealt;
//! mod other {
//!     #[derive(playfield_room::Message)]
//!     pub struct Draw;
//! }
//! #[room(messages(Draw), events(Dealt))]
//! impl Room for Table {
//!     fn tick(&mut self, cx: &mut Context<Self>) {
//!         cx.emit(&Draw);
//!     }
//! }
//! impl Handle<Draw> for Table {
//!     fn handle(&mut self, _: Draw, _: &Player, _: &mut Context<Self>) -> Result<()> {
//!         Ok(())
//!     }
//! }
//! ```
//!
//! An internal message must be declared.
//!
//! ```compile_fail
//! use playfield_room::*;
//! use playfield_state::{Map, State};
//! #[derive(State, Default)]
//! struct Table {
//!     #[sync(owner)]
//!     hands: Map<PlayerId, u32>,
//! }
//! #[derive(Message)]
//! struct Draw;
//! #[derive(Message)]
//! struct Dealt;
//! mod other {
//!     #[derive(playfield_room::Message)]
//!     pub struct Draw;
//! }
//! #[room(messages(Draw), events(Dealt))]
//! impl Room for Table {
//!     fn tick(&mut self, cx: &mut Context<Self>) {
//!         cx.after(std::time::Duration::ZERO, Dealt);
//!     }
//! }
//! impl Handle<Draw> for Table {
//!     fn handle(&mut self, _: Draw, _: &Player, _: &mut Context<Self>) -> Result<()> {
//!         Ok(())
//!     }
//! }
//! ```
//!
//! A request to another room must be declared.
//!
//! ```compile_fail
//! use playfield_room::*;
//! use playfield_state::{Map, State};
//! #[derive(State, Default)]
//! struct Table {
//!     #[sync(owner)]
//!     hands: Map<PlayerId, u32>,
//! }
//! #[derive(Message)]
//! struct Draw;
//! #[derive(Message)]
//! struct Dealt;
//! mod other {
//!     #[derive(playfield_room::Message)]
//!     pub struct Draw;
//! }
//! #[room(messages(Draw), events(Dealt))]
//! impl Room for Table {
//!     fn tick(&mut self, cx: &mut Context<Self>) {
//!         cx.ask("other", &Dealt);
//!     }
//! }
//! impl Handle<Draw> for Table {
//!     fn handle(&mut self, _: Draw, _: &Player, _: &mut Context<Self>) -> Result<()> {
//!         Ok(())
//!     }
//! }
//! ```
//!
//! Two messages of one name can't be told apart, whatever they are called here.
//!
//! ```compile_fail
//! use playfield_room::*;
//! use playfield_state::{Map, State};
//! #[derive(State, Default)]
//! struct Table {
//!     #[sync(owner)]
//!     hands: Map<PlayerId, u32>,
//! }
//! #[derive(Message)]
//! struct Draw;
//! #[derive(Message)]
//! struct Dealt;
//! mod other {
//!     #[derive(playfield_room::Message)]
//!     pub struct Draw;
//! }
//! use other::Draw as Pull;
//! #[room(messages(Draw, Pull), events(Dealt))]
//! impl Room for Table {
//!     fn tick(&mut self, cx: &mut Context<Self>) {
//!         cx.emit(&Dealt);
//!     }
//! }
//! impl Handle<Draw> for Table {
//!     fn handle(&mut self, _: Draw, _: &Player, _: &mut Context<Self>) -> Result<()> {
//!         Ok(())
//!     }
//! }
//! impl Handle<Pull> for Table {
//!     fn handle(&mut self, _: Pull, _: &Player, _: &mut Context<Self>) -> Result<()> {
//!         Ok(())
//!     }
//! }
//! ```
//!
//! What is owned needs an owner.
//!
//! ```compile_fail
//! use playfield_room::*;
//! use playfield_state::{Map, State};
//! #[derive(State, Default)]
//! struct Table {
//!     #[sync(owner)]
//!     hand: u32,
//! }
//! #[derive(Message)]
//! struct Draw;
//! #[derive(Message)]
//! struct Dealt;
//! mod other {
//!     #[derive(playfield_room::Message)]
//!     pub struct Draw;
//! }
//! #[room(messages(Draw), events(Dealt))]
//! impl Room for Table {
//!     fn tick(&mut self, cx: &mut Context<Self>) {
//!         cx.emit(&Dealt);
//!     }
//! }
//! impl Handle<Draw> for Table {
//!     fn handle(&mut self, _: Draw, _: &Player, _: &mut Context<Self>) -> Result<()> {
//!         Ok(())
//!     }
//! }
//! ```
//!
//! The trait alone declares nothing.
//!
//! ```compile_fail
//! use playfield_room::*;
//! use playfield_state::{Map, State};
//! #[derive(State, Default)]
//! struct Table {
//!     #[sync(owner)]
//!     hands: Map<PlayerId, u32>,
//! }
//! #[derive(Message)]
//! struct Draw;
//! #[derive(Message)]
//! struct Dealt;
//! mod other {
//!     #[derive(playfield_room::Message)]
//!     pub struct Draw;
//! }
//! impl Room for Table {
//!     type Options = ();
//!     fn create(_: (), _: &mut Context<Self>) -> Result<Self> {
//!         Ok(Self::default())
//!     }
//!     fn tick(&mut self, cx: &mut Context<Self>) {
//!         cx.emit(&Dealt);
//!     }
//! }
//! impl Handle<Draw> for Table {
//!     fn handle(&mut self, _: Draw, _: &Player, _: &mut Context<Self>) -> Result<()> {
//!         Ok(())
//!     }
//! }
//! ```
//!
//! Options have their range.
//!
//! ```compile_fail
//! use playfield_room::*;
//! use playfield_state::{Map, State};
//! #[derive(State, Default)]
//! struct Table {
//!     #[sync(owner)]
//!     hands: Map<PlayerId, u32>,
//! }
//! #[derive(Message)]
//! struct Draw;
//! #[derive(Message)]
//! struct Dealt;
//! mod other {
//!     #[derive(playfield_room::Message)]
//!     pub struct Draw;
//! }
//! #[room(messages(Draw), capacity = 0, events(Dealt))]
//! impl Room for Table {
//!     fn tick(&mut self, cx: &mut Context<Self>) {
//!         cx.emit(&Dealt);
//!     }
//! }
//! impl Handle<Draw> for Table {
//!     fn handle(&mut self, _: Draw, _: &Player, _: &mut Context<Self>) -> Result<()> {
//!         Ok(())
//!     }
//! }
//! ```
