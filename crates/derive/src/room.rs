//! `#[room(…)]`: what a room type declares, and the dispatch of messages to handlers.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{format_ident, quote, quote_spanned};
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Ident, ItemImpl, LitInt, Path, Token, parenthesized};

/// The attribute's options.
#[derive(Default)]
pub(crate) struct Arguments {
    messages: Vec<Path>,
    events: Vec<Path>,
    internal: Vec<Path>,
    asks: Vec<Path>,
    criteria: Vec<Ident>,
    creation: Option<Ident>,
    one_per_user: Option<Ident>,
    record: Option<Ident>,
    durability: Option<Ident>,
    isolated: Option<Ident>,
    tick_hz: Option<LitInt>,
    sync_hz: Option<LitInt>,
    capacity: Option<LitInt>,
    empty_ms: Option<LitInt>,
    silence_ms: Option<LitInt>,
    round_trip_ms: Option<LitInt>,
    grace_ms: Option<LitInt>,
    persist: Option<LitInt>,
    closing_ms: Option<LitInt>,
    join_wait_ms: Option<LitInt>,
    joins_waiting_max: Option<LitInt>,
    reply_ms: Option<LitInt>,
    /// The errors in some of them. The others count, or the compiler would miss them too.
    wrong: Option<syn::Error>,
}

const OPTIONS: &str = "messages(…), events(…), internal(…), asks(…), tick_hz = …, sync_hz = …, \
                       capacity = …, empty_ms = …, closing_ms = …, join_wait_ms = …, \
                       joins_waiting_max = …, reply_ms = …, silence_ms = …, round_trip_ms = …, \
                       grace_ms = …, persist = …, creation = …, one_per_user = …, record = …, \
                       durability = …, isolated = …, criteria(…)";

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut arguments = Self::default();
        while !input.is_empty() {
            if let Err(error) = arguments.option(input) {
                note(&mut arguments.wrong, error);
                while !input.is_empty() && !input.peek(Token![,]) {
                    input.parse::<TokenTree>()?;
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(arguments)
    }
}

impl Arguments {
    /// Reads one option and its value.
    fn option(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        let name: Ident = input.parse()?;
        match name.to_string().as_str() {
            "messages" => names(input, &name, &mut self.messages),
            "events" => names(input, &name, &mut self.events),
            "internal" => names(input, &name, &mut self.internal),
            "asks" => names(input, &name, &mut self.asks),
            "criteria" => criteria(input, &name, &mut self.criteria),
            "creation" => choice(input, &name, &mut self.creation, ["anyone", "server"]),
            "one_per_user" => choice(input, &name, &mut self.one_per_user, ["take_over", "refuse"]),
            "durability" => choice(input, &name, &mut self.durability, ["save", "journal"]),
            "isolated" => choice(input, &name, &mut self.isolated, ["freeze", "go_on"]),
            "record" => choice(input, &name, &mut self.record, ["always", "never"]),
            "tick_hz" => number(input, &name, &mut self.tick_hz, 0..=1_000),
            "sync_hz" => number(input, &name, &mut self.sync_hz, 0..=1_000),
            "capacity" => number(input, &name, &mut self.capacity, 1..=1_000_000),
            "empty_ms" => number(input, &name, &mut self.empty_ms, 0..=0xffff_ffff),
            "closing_ms" => number(input, &name, &mut self.closing_ms, 0..=600_000),
            "join_wait_ms" => number(input, &name, &mut self.join_wait_ms, 0..=600_000),
            "reply_ms" => number(input, &name, &mut self.reply_ms, 1..=3_600_000),
            "joins_waiting_max" => number(input, &name, &mut self.joins_waiting_max, 0..=1_000_000),
            "persist" => number(input, &name, &mut self.persist, 1..=86_400),
            "silence_ms" => number(input, &name, &mut self.silence_ms, 100..=3_600_000),
            "round_trip_ms" => number(input, &name, &mut self.round_trip_ms, 100..=3_600_000),
            "grace_ms" => number(input, &name, &mut self.grace_ms, 0..=86_400_000),
            other => {
                let message = format!("unknown option `{other}`; the options are {OPTIONS}");
                Err(syn::Error::new(name.span(), message))
            }
        }
    }
}

/// Adds an error to those before.
fn note(errors: &mut Option<syn::Error>, error: syn::Error) {
    match errors {
        Some(errors) => errors.combine(error),
        None => *errors = Some(error),
    }
}

/// Parses the items in parentheses after a name. All of them are read, even if one is wrong.
fn list<T: Parse>(input: ParseStream<'_>) -> syn::Result<Punctuated<T, Token![,]>> {
    let inside;
    parenthesized!(inside in input);
    Punctuated::parse_terminated.parse2(inside.parse()?)
}

fn names(input: ParseStream<'_>, name: &Ident, into: &mut Vec<Path>) -> syn::Result<()> {
    let mut wrong = None;
    if !into.is_empty() {
        let message = format!("`{name}` is given twice: put all into one list");
        wrong = Some(syn::Error::new(name.span(), message));
    }
    for path in list::<Path>(input)? {
        let same = |other: &Path| {
            other.segments.last().map(|last| &last.ident)
                == path.segments.last().map(|last| &last.ident)
        };
        if into.iter().any(same) {
            let message = format!("two {name} have the same name: rename one of the types");
            note(&mut wrong, syn::Error::new_spanned(&path, message));
        } else {
            into.push(path);
        }
    }
    wrong.map_or(Ok(()), Err)
}

/// The fields of the options that are criteria.
fn criteria(input: ParseStream<'_>, name: &Ident, into: &mut Vec<Ident>) -> syn::Result<()> {
    let fields = list::<Ident>(input)?;
    if !into.is_empty() {
        return Err(syn::Error::new(name.span(), "`criteria` is given twice"));
    }
    for field in fields {
        if into.contains(&field) {
            return Err(syn::Error::new(field.span(), format!("`{field}` is named twice")));
        }
        into.push(field);
    }
    Ok(())
}

/// One of two words.
fn choice(
    input: ParseStream<'_>,
    name: &Ident,
    into: &mut Option<Ident>,
    words: [&str; 2],
) -> syn::Result<()> {
    input.parse::<Token![=]>()?;
    let word: Ident = input.parse()?;
    if words.iter().all(|known| word != known) {
        let [one, other] = words;
        let message = format!("`{name}` must be `{one}` or `{other}`");
        return Err(syn::Error::new(word.span(), message));
    }
    if into.replace(word).is_some() {
        return Err(syn::Error::new(name.span(), format!("`{name}` is given twice")));
    }
    Ok(())
}

fn number(
    input: ParseStream<'_>,
    name: &Ident,
    into: &mut Option<LitInt>,
    range: std::ops::RangeInclusive<u64>,
) -> syn::Result<()> {
    input.parse::<Token![=]>()?;
    let literal: LitInt = input.parse()?;
    let value: u64 = literal.base10_parse()?;
    if !range.contains(&value) {
        let message = format!("`{name}` must be from {} to {}", range.start(), range.end());
        return Err(syn::Error::new(literal.span(), message));
    }
    if into.replace(literal).is_some() {
        return Err(syn::Error::new(name.span(), format!("`{name}` is given twice")));
    }
    Ok(())
}

/// `impl Room for … { … }`. Its body is kept unparsed: it may come from a macro, with groups that
/// rustc understands and syn does not, and rustc reports errors in it better.
pub(crate) struct RoomImpl {
    /// Everything before the body, and the same parsed.
    tokens: TokenStream,
    header: ItemImpl,
    body: Group,
}

impl Parse for RoomImpl {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let item = input.parse::<TokenStream>()?;
        let mut tokens: Vec<TokenTree> = item.clone().into_iter().collect();
        let body = match tokens.pop() {
            Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => body,
            _ => return Err(syn::Error::new_spanned(item, MISPLACED)),
        };
        let tokens: TokenStream = tokens.into_iter().collect();
        let header = syn::parse2(quote!(#tokens {}))?;
        Ok(Self { tokens, header, body })
    }
}

impl RoomImpl {
    /// Whether the body has an item of this kind (`fn`, `type`) and name.
    fn defines(&self, kind: &str, name: &str) -> bool {
        fn search(tokens: TokenStream, kind: &str, name: &str) -> bool {
            let mut after_kind = false;
            tokens.into_iter().any(|token| match token {
                // An item passed on by a macro.
                TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                    search(group.stream(), kind, name)
                }
                TokenTree::Ident(ident) => {
                    std::mem::replace(&mut after_kind, ident == kind) && ident == name
                }
                _ => {
                    after_kind = false;
                    false
                }
            })
        }
        search(self.body.stream(), kind, name)
    }
}

/// The callbacks of a room.
const CALLBACKS: [&str; 9] =
    ["create", "rebuild", "moved", "join", "lost", "returned", "leave", "closing", "tick"];

/// Refuses callbacks that are `async`: the compiler would only say that they don't fit the trait.
/// Returns the body with such callbacks made to fit.
fn refuse_async(body: TokenStream, wrong: &mut Option<syn::Error>) -> TokenStream {
    let mut checked: Vec<TokenTree> = Vec::new();
    let mut is_refused = false;
    for token in body {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                checked.extend(refuse_async(group.stream(), wrong));
            }
            TokenTree::Group(group) if is_refused && group.delimiter() == Delimiter::Brace => {
                is_refused = false;
                checked.extend(quote!({ ::std::unreachable!() }));
            }
            TokenTree::Ident(ident) => {
                if let [.., TokenTree::Ident(before), TokenTree::Ident(of)] = &*checked
                    && before == "async"
                    && of == "fn"
                    && CALLBACKS.iter().any(|name| ident == name)
                {
                    note(wrong, async_callback(before.span(), &ident));
                    is_refused = true;
                    let quiet = quote!(#[allow(unused_variables)]);
                    checked.splice(checked.len() - 2..checked.len() - 1, quiet);
                }
                checked.push(ident.into());
            }
            other => checked.push(other),
        }
    }
    checked.into_iter().collect()
}

fn async_callback(span: Span, ident: &Ident) -> syn::Error {
    let wait = match ident.to_string().as_str() {
        "create" | "join" => {
            "begin it with `cx.hold(async move { … })`: the player or the room waits until its \
             message has come by `On`"
        }
        _ => "begin it with `cx.spawn(async move { … })`: its message comes by `On`",
    };
    let message = format!(
        "`{ident}` can't be async: a room runs one callback at a time, and none may wait. For \
         work that takes time, {wait}"
    );
    syn::Error::new(span, message)
}

const MISPLACED: &str = "#[room(…)] belongs before `impl Room for …`";

/// Completes the `impl Room`, and writes what was declared.
pub(crate) fn expand_room(arguments: &Arguments, item: &RoomImpl) -> syn::Result<TokenStream> {
    let rt = crate::rt();
    let RoomImpl { tokens, header: ItemImpl { generics, trait_, self_ty: room, .. }, body } = item;
    let of_trait = trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
    if of_trait.is_none_or(|last| last.ident != "Room") {
        return Err(syn::Error::new_spanned(room, MISPLACED));
    }
    if !generics.params.is_empty() {
        return Err(syn::Error::new_spanned(
            generics,
            "a room type cannot have parameters: its clients are built for one schema",
        ));
    }
    let mut wrong = arguments.wrong.clone();
    let items = refuse_async(body.stream(), &mut wrong);
    let wrong = wrong.map(|error| error.to_compile_error());
    let options = (!item.defines("type", "Options")).then(|| {
        quote!(
            type Options = ();
        )
    });
    let create = (!item.defines("fn", "create")).then(|| {
        quote! {
            fn create(_: Self::Options, _: &mut #rt::Context<Self>) -> #rt::Result<Self> {
                ::std::result::Result::Ok(<Self as ::std::default::Default>::default())
            }
        }
    });
    let span = body.span();
    let body = quote_spanned!(span => { #items #options #create });
    let declared = declared(&rt, room, arguments);
    let markers = markers(&rt, room, arguments);
    let checks = checks(&rt, room, arguments);
    Ok(quote! {
        #wrong
        #tokens #body
        #declared
        #markers
        #checks
    })
}

/// Checks that only the compiler can make: that no two names are equal (a type may be imported
/// under another name), and that each `owner` field has an owner.
fn checks(rt: &TokenStream, room: &syn::Type, arguments: &Arguments) -> TokenStream {
    let Arguments { messages, events, internal, asks, .. } = arguments;
    let distinct = [messages, events, internal, asks].into_iter().flat_map(|list| {
        list.iter().enumerate().skip(1).map(move |(place, path)| {
            let before = &list[..place];
            let rt = at(rt, path.span());
            quote_spanned! { path.span() =>
                const _: () = #rt::new_name(<#path as #rt::Message>::NAME, &[#(<#before as #rt::Message>::NAME),*]);
            }
        })
    });
    let owned = quote_spanned! { room.span() =>
        const _: () = #rt::check_root::<#room>();
    };
    quote!(#(#distinct)* #owned)
}

fn declared(rt: &TokenStream, room: &syn::Type, arguments: &Arguments) -> TokenStream {
    let Arguments { messages, events, internal, asks, .. } = arguments;
    let settings = settings(rt, arguments);
    let criteria = criteria_of(rt, arguments);
    let numbers: Vec<u32> = (0..messages.len() as u32).collect();
    let constants: Vec<Ident> =
        (0..messages.len()).map(|place| format_ident!("MESSAGE_{place}")).collect();
    let calls = functions(rt, "call", messages);
    let takes = functions(rt, "take", internal);
    let answers = functions(rt, "answered", asks);
    let internal_constants: Vec<Ident> =
        (0..internal.len()).map(|place| format_ident!("INTERNAL_{place}")).collect();
    let ask_constants: Vec<Ident> =
        (0..asks.len()).map(|place| format_ident!("ASK_{place}")).collect();
    quote! {
        #[automatically_derived]
        impl #rt::Declared for #room {
            const SETTINGS: #rt::Settings = #settings;

            #criteria

            const NAMES: &'static [&'static str] = &[
                #(<#messages as #rt::Message>::NAME,)*
                #(<#internal as #rt::Message>::NAME,)*
                #(<#asks as #rt::Message>::NAME,)*
            ];

            fn internal_type(name: &str) -> ::std::option::Option<#rt::schema::Type> {
                #(const #internal_constants: &str = <#internal as #rt::Message>::NAME;)*
                match name {
                    #(#internal_constants => {
                        ::std::option::Option::Some(<#internal as #rt::Data>::schema())
                    })*
                    _ => ::std::option::Option::None,
                }
            }

            fn declare(schema: &mut #rt::RoomSchema) {
                let _ = &schema;
                #(schema.messages.push(#rt::MessageSchema {
                    name: <#messages as #rt::Message>::NAME.into(),
                    of: <#messages as #rt::Data>::schema(),
                    reply: <<#messages as #rt::Message>::Reply as #rt::Data>::schema(),
                });)*
                #(schema.events.push(#rt::EventSchema {
                    name: <#events as #rt::Message>::NAME.into(),
                    of: <#events as #rt::Data>::schema(),
                });)*
            }

            fn dispatch(
                &mut self,
                message: &#rt::MessageRef<'_>,
                call: #rt::Call<'_>,
                cx: &mut #rt::Context<Self>,
            ) -> #rt::Result<()> {
                #(const #constants: &str = <#messages as #rt::Message>::NAME;)*
                let _ = (&call, &cx);
                let index = match message {
                    #rt::MessageRef::Index(index) => *index,
                    #rt::MessageRef::Name(name) => match &**name {
                        #(#constants => #numbers,)*
                        _ => u32::MAX,
                    },
                };
                match index {
                    #(#numbers => #calls(self, call, cx),)*
                    _ => ::std::result::Result::Err(#rt::unknown(message)),
                }
            }

            fn internal(
                &mut self,
                name: &str,
                payload: &[u8],
                reply: &mut ::std::vec::Vec<u8>,
                cx: &mut #rt::Context<Self>,
            ) -> #rt::Result<()> {
                #(const #internal_constants: &str = <#internal as #rt::Message>::NAME;)*
                let _ = (&payload, &reply, &cx);
                match name {
                    #(#internal_constants => #takes(self, payload, reply, cx),)*
                    _ => ::std::result::Result::Err(#rt::unknown(&#rt::MessageRef::Name(name.into()))),
                }
            }

            fn answer(
                &mut self,
                name: &str,
                ask: #rt::AskId,
                reply: #rt::Result<::std::vec::Vec<u8>>,
                cx: &mut #rt::Context<Self>,
            ) {
                #(const #ask_constants: &str = <#asks as #rt::Message>::NAME;)*
                let _ = (ask, &reply, &cx);
                match name {
                    #(#ask_constants => #answers(self, ask, reply, cx),)*
                    _ => {}
                }
            }
        }
    }
}

/// The function that dispatches to each of these. It has the span of the declaration, so the
/// compiler reports a missing handler there.
fn functions(rt: &TokenStream, name: &str, of: &[Path]) -> Vec<TokenStream> {
    let function = |path: &Path| {
        let (rt, name) = (at(rt, path.span()), Ident::new(name, path.span()));
        quote_spanned!(path.span() => #rt::#name::<Self, #path>)
    };
    of.iter().map(function).collect()
}

/// The same tokens with another span.
fn at(tokens: &TokenStream, span: Span) -> TokenStream {
    let respan = |mut token: TokenTree| {
        token.set_span(span);
        token
    };
    tokens.clone().into_iter().map(respan).collect()
}

fn settings(rt: &TokenStream, arguments: &Arguments) -> TokenStream {
    let Arguments { tick_hz, sync_hz, capacity, empty_ms, closing_ms, silence_ms, .. } = arguments;
    let Arguments { join_wait_ms, joins_waiting_max, reply_ms, grace_ms, persist, .. } = arguments;
    let Arguments { round_trip_ms, .. } = arguments;
    let or = |given: &Option<LitInt>, default: TokenStream| {
        given.as_ref().map_or(default, |given| {
            let digits = proc_macro2::Literal::u64_unsuffixed(given.base10_parse().unwrap_or(0));
            quote!(#digits)
        })
    };
    // By default, a room that ticks syncs as often.
    let ticks = tick_hz
        .as_ref()
        .and_then(|hz| hz.base10_parse::<u64>().ok())
        .filter(|hz| *hz > 0)
        .unwrap_or(20);
    let ticks = proc_macro2::Literal::u64_unsuffixed(ticks);
    let tick_hz = or(tick_hz, quote!(0));
    let sync_hz = or(sync_hz, quote!(#ticks));
    let capacity = or(capacity, quote!(64));
    let empty_ms = or(empty_ms, quote!(30_000));
    let closing_ms = or(closing_ms, quote!(5_000));
    let join_wait_ms = or(join_wait_ms, quote!(10_000));
    let joins_waiting_max = or(joins_waiting_max, quote!(256));
    let reply_ms = or(reply_ms, quote!(30_000));
    let silence_ms = or(silence_ms, quote!(0));
    let round_trip_ms = or(round_trip_ms, quote!(0));
    let grace_ms = or(grace_ms, quote!(10_000));
    let persist_s = or(persist, quote!(0));
    let by_server = arguments.creation.as_ref().is_some_and(|by| by == "server");
    let one_per_user = match &arguments.one_per_user {
        None => quote!(No),
        Some(word) if word == "refuse" => quote!(Refuse),
        Some(_) => quote!(TakeOver),
    };
    let record = match &arguments.record {
        None => quote!(Failures),
        Some(word) if word == "never" => quote!(Never),
        Some(_) => quote!(Always),
    };
    let durability = match &arguments.durability {
        Some(word) if word == "journal" => quote!(Journal),
        _ => quote!(Save),
    };
    let isolated = match &arguments.isolated {
        None => quote!(Usual),
        Some(word) if word == "freeze" => quote!(Freeze),
        Some(_) => quote!(GoOn),
    };
    let creation = if by_server { quote!(Server) } else { quote!(Anyone) };
    quote! {
        #rt::Settings {
            tick_hz: #tick_hz,
            sync_hz: #sync_hz,
            capacity: #capacity,
            empty_ms: #empty_ms,
            closing_ms: #closing_ms,
            join_wait_ms: #join_wait_ms,
            joins_waiting_max: #joins_waiting_max,
            reply_ms: #reply_ms,
            silence_ms: #silence_ms,
            round_trip_ms: #round_trip_ms,
            grace_ms: #grace_ms,
            persist_s: #persist_s,
            creation: #rt::CreatedBy::#creation,
            one_per_user: #rt::OnePerUser::#one_per_user,
            record: #rt::Record::#record,
            durability: #rt::Durability::#durability,
            isolated: #rt::Isolated::#isolated,
        }
    }
}

/// The values of the options that are criteria, one after the other. Each says where it ends, so
/// that different values never make the same bytes.
fn criteria_of(rt: &TokenStream, arguments: &Arguments) -> TokenStream {
    if arguments.criteria.is_empty() {
        return TokenStream::new();
    }
    let encoded = arguments.criteria.iter().map(|field| {
        let rt = at(rt, field.span());
        quote_spanned!(field.span() => #rt::Data::encode(&options.#field, out);)
    });
    quote! {
        const HAS_CRITERIA: bool = true;

        fn criteria(
            options: &<Self as #rt::Room>::Options,
            out: &mut ::std::vec::Vec<u8>,
        ) {
            #(#encoded)*
        }
    }
}

fn markers(rt: &TokenStream, room: &syn::Type, arguments: &Arguments) -> TokenStream {
    let Arguments { messages, events, internal, asks, .. } = arguments;
    let message_numbers = 0..messages.len() as u32;
    let event_numbers = 0..events.len() as u32;
    quote! {
        #[automatically_derived]
        impl #rt::RoomInterface for #room {
            type CreateOptions = <#room as #rt::Room>::Options;

            fn room_schema() -> #rt::RoomSchema {
                #rt::room_schema::<#room>()
            }
        }

        #(impl #rt::Accepts<#messages> for #room { const INDEX: u32 = #message_numbers; })*
        #(impl #rt::Emits<#events> for #room { const INDEX: u32 = #event_numbers; })*
        #(impl #rt::Internal<#internal> for #room {})*
        #(impl #rt::Asks<#asks> for #room {})*
    }
}
