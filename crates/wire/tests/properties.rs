//! Properties of every message in every format, and of bytes that are no message.

use std::cell::Cell;

use crate::messages::any::message;
use crate::messages::{Message, Written};
use playfield_wire::client::ClientMessage;
use playfield_wire::framing::{
    FixedSize, Frame, FrameCodec, FrameError, Framing, LengthPrefixed, write_frame,
};
use playfield_wire::packet::{Big, Little};
use playfield_wire::reader::Reader;
use playfield_wire::server::ServerMessage;
use playfield_wire::tree::{TreeWriter, read_value};
use playfield_wire::writer::{put_f32, put_f64, put_varint, put_zigzag};
use playfield_wire::{Format, TreeFormat};
use proptest::collection::vec;
use proptest::prelude::*;

/// Checks that a message is read and written as its form says, and other bytes are refused.
fn comes_back<M: Message>(
    format: Format,
    written: &Written,
    extra: u8,
) -> Result<(), TestCaseError> {
    let Written { bytes, required, is_open } = written;
    let again = M::again(format, bytes);
    prop_assert_eq!(again.as_ref(), Ok(bytes));
    prop_assert!(format.tree().is_none_or(|format| read_value(format, bytes).is_ok()));
    for cut in 0..*required {
        prop_assert!(M::again(format, &bytes[..cut]).is_err(), "cut at {}", cut);
    }
    // White space may follow in JSON.
    let extra = if format == Format::Json { b'}' } else { extra };
    prop_assert_eq!(M::again(format, &[&bytes[..], &[extra]].concat()).is_ok(), *is_open);
    Ok(())
}

fn frame_is_written_as_read(
    codec: &impl FrameCodec,
    input: &[u8],
    body_bytes_max: usize,
) -> Result<(), TestCaseError> {
    if let Ok(Some(frame)) = codec.decode(input, body_bytes_max) {
        prop_assert!(frame.body.len() <= body_bytes_max && frame.consumed > 0);
        let mut out = Vec::new();
        prop_assert_eq!(codec.encode(&mut out, frame.body), Ok(()));
        prop_assert_eq!(Some(&out[..]), input.get(..frame.consumed));
    }
    Ok(())
}

/// Lines, and how many bytes were searched for their ends.
struct Lines(Cell<usize>);

impl FrameCodec for Lines {
    fn decode<'a>(
        &self,
        input: &'a [u8],
        body_bytes_max: usize,
    ) -> Result<Option<Frame<'a>>, FrameError> {
        self.decode_on(input, 0, body_bytes_max)
    }

    fn decode_on<'a>(
        &self,
        input: &'a [u8],
        known: usize,
        body_bytes_max: usize,
    ) -> Result<Option<Frame<'a>>, FrameError> {
        let end = input[known..].iter().position(|&byte| byte == b'\n').map(|place| known + place);
        self.0.set(self.0.get() + end.map_or(input.len(), |end| end + 1) - known);
        let line = &input[..end.unwrap_or(input.len())];
        if line.len() > body_bytes_max {
            return Err(FrameError::too_large(line.len(), body_bytes_max));
        }
        Ok(end.map(|end| Frame { body: line, consumed: end + 1 }))
    }

    fn encode_with(
        &self,
        out: &mut Vec<u8>,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), FrameError> {
        body(out);
        out.push(b'\n');
        Ok(())
    }
}

/// All frames of a stream that arrives in these pieces, as a service reads it.
fn frames_of(
    codec: &impl FrameCodec,
    stream: &[u8],
    cuts: &[usize],
    body_bytes_max: usize,
) -> Vec<Vec<u8>> {
    let (mut frames, mut held, mut rest) = (Vec::new(), Vec::new(), stream);
    let mut known = 0;
    for cut in cuts.iter().copied().chain([usize::MAX]) {
        let (piece, later) = rest.split_at(cut.min(rest.len()));
        rest = later;
        held.extend_from_slice(piece);
        while let Ok(Some(frame)) =
            codec.decode_on(&held, std::mem::take(&mut known), body_bytes_max)
        {
            frames.push(frame.body.to_vec());
            let consumed = frame.consumed;
            held.drain(..consumed);
        }
        known = held.len();
    }
    frames
}

proptest! {
    #[test]
    fn frames_are_the_same_however_they_are_cut(
        bodies in vec(vec(any::<u8>().prop_filter("an end", |byte| *byte != b'\n'), 0..20), 0..8),
        cuts in vec(0..6_usize, 0..60),
    ) {
        let codec = Lines(Cell::new(0));
        let prefixed = LengthPrefixed::<u16, Big>::new();
        let (mut lines, mut others) = (Vec::new(), Vec::new());
        for body in &bodies {
            codec.encode(&mut lines, body).unwrap();
            prefixed.encode(&mut others, body).unwrap();
        }
        prop_assert_eq!(&frames_of(&codec, &lines, &cuts, 20), &bodies);
        prop_assert_eq!(codec.0.get(), lines.len(), "each byte is searched once");
        prop_assert_eq!(&frames_of(&prefixed, &others, &cuts, 20), &bodies);
    }

    #[test]
    fn client_messages_come_back(
        packed in message::<ClientMessage<'_>>(Format::Packed),
        msgpack in message::<ClientMessage<'_>>(Format::Msgpack),
        json in message::<ClientMessage<'_>>(Format::Json),
        extra: u8,
    ) {
        for (format, written) in Format::ALL.into_iter().zip([packed, msgpack, json]) {
            comes_back::<ClientMessage<'_>>(format, &written, extra)?;
        }
    }

    #[test]
    fn server_messages_come_back(
        packed in message::<ServerMessage<'_>>(Format::Packed),
        msgpack in message::<ServerMessage<'_>>(Format::Msgpack),
        json in message::<ServerMessage<'_>>(Format::Json),
        extra: u8,
    ) {
        for (format, written) in Format::ALL.into_iter().zip([packed, msgpack, json]) {
            comes_back::<ServerMessage<'_>>(format, &written, extra)?;
        }
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(bytes in vec(any::<u8>(), 0..200), kind in 0_u8..0x50) {
        for body in [bytes.clone(), [&[kind], &bytes[..]].concat()] {
            let _ = ClientMessage::decode_first(&body);
            for format in Format::ALL {
                let _ = ClientMessage::decode(format, &body);
                let _ = ServerMessage::decode(format, &body);
            }
        }
    }

    #[test]
    fn no_change_of_a_byte_makes_a_decoder_panic(
        (format, client, server) in prop_oneof![Just(Format::Msgpack), Just(Format::Json)]
            .prop_flat_map(|format| {
                (
                    Just(format),
                    message::<ClientMessage<'_>>(format),
                    message::<ServerMessage<'_>>(format),
                )
            }),
        at: prop::sample::Index,
        byte: u8,
    ) {
        let mut bytes = client.bytes;
        let index = at.index(bytes.len());
        bytes[index] = byte;
        let _ = ClientMessage::decode(format, &bytes);
        let _ = format.tree().map(|format| read_value(format, &bytes));
        let mut bytes = server.bytes;
        let index = at.index(bytes.len());
        bytes[index] = byte;
        let _ = ServerMessage::decode(format, &bytes);
    }

    #[test]
    fn what_is_decoded_from_packed_is_encoded_as_the_same_bytes(
        kind in prop_oneof![1_u8..0x0e, 0x41_u8..0x4d],
        fields in vec(prop_oneof![0_u8..4, any::<u8>()], 0..12),
    ) {
        let body = [&[kind], &fields[..]].concat();
        let mut out = Vec::new();
        if let Ok(message) = ServerMessage::decode(Format::Packed, &body) {
            message.encode(Format::Packed, &mut out);
            prop_assert_eq!(&out, &body);
        }
        match ClientMessage::decode(Format::Packed, &body) {
            Ok(ClientMessage::Hello(hello)) if hello.protocol != playfield_wire::PROTOCOL => {}
            Ok(message) => {
                message.encode(Format::Packed, &mut out);
                prop_assert_eq!(&out, &body);
            }
            Err(_) => {}
        }
    }

    #[test]
    fn numbers_come_back(unsigned: u64, signed: i64, narrow: u32, wide: u64, shift in 0..64_u32) {
        let (unsigned, signed) = (unsigned >> shift, signed >> shift);
        let mut out = Vec::new();
        put_varint(&mut out, unsigned);
        put_zigzag(&mut out, signed);
        put_f32(&mut out, f32::from_bits(narrow));
        put_f64(&mut out, f64::from_bits(wide));
        let mut reader = Reader::new(&out);
        prop_assert_eq!(reader.varint(), Ok(unsigned));
        prop_assert_eq!(reader.zigzag(), Ok(signed));
        prop_assert_eq!(reader.f32().unwrap().to_bits(), narrow);
        prop_assert_eq!(reader.f64().unwrap().to_bits(), wide);
        prop_assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn msgpack_values_come_back(unsigned: u64, signed: i64, narrow: u32, wide: u64, shift in 0..64_u32, raw: Vec<u8>) {
        use playfield_wire::json::{as_bytes, as_f64, as_i64, as_u64};
        let (unsigned, signed) = (unsigned >> shift, signed >> shift);
        let (narrow, wide) = (f32::from_bits(narrow), f64::from_bits(wide));
        let mut out = Vec::new();
        let mut array = TreeWriter::new(TreeFormat::Msgpack, &mut out).array(5);
        array.element().u64(unsigned);
        array.element().i64(signed);
        array.element().f32(narrow);
        array.element().f64(wide);
        array.element().bytes(&raw);
        array.end();
        let values = read_value(TreeFormat::Msgpack, &out).unwrap();
        prop_assert_eq!(as_u64(&values[0]), Some(unsigned));
        prop_assert_eq!(as_i64(&values[1]), Some(signed));
        let back = as_f64(&values[2]).unwrap() as f32;
        prop_assert!(back.to_bits() == narrow.to_bits() || (back.is_nan() && narrow.is_nan()));
        let back = as_f64(&values[3]).unwrap();
        prop_assert!(back.to_bits() == wide.to_bits() || (back.is_nan() && wide.is_nan()));
        prop_assert_eq!(as_bytes(&values[4]), Some(raw));
        for cut in 0..out.len() {
            prop_assert!(read_value(TreeFormat::Msgpack, &out[..cut]).is_err() || cut == 0);
        }
    }

    #[test]
    fn json_numbers_come_back(unsigned: u64, signed: i64, narrow: u32, wide: u64, shift in 0..64_u32) {
        use playfield_wire::json::{as_f64, as_i64, as_u64, write_f32, write_f64, write_i64, write_u64};
        let (unsigned, signed) = (unsigned >> shift, signed >> shift);
        let (narrow, wide) = (f32::from_bits(narrow), f64::from_bits(wide));
        let mut out = b"[".to_vec();
        write_u64(&mut out, unsigned);
        out.push(b',');
        write_i64(&mut out, signed);
        out.push(b',');
        write_f32(&mut out, narrow);
        out.push(b',');
        write_f64(&mut out, wide);
        out.push(b']');
        let values: serde_json::Value = serde_json::from_slice(&out).unwrap();
        prop_assert_eq!(as_u64(&values[0]), Some(unsigned));
        prop_assert_eq!(as_i64(&values[1]), Some(signed));
        let back = as_f64(&values[2]).unwrap() as f32;
        prop_assert!(back.to_bits() == narrow.to_bits() || (back.is_nan() && narrow.is_nan()));
        let back = as_f64(&values[3]).unwrap();
        prop_assert!(back.to_bits() == wide.to_bits() || (back.is_nan() && wide.is_nan()));
    }

    #[test]
    fn frames_survive_any_cut(
        bodies in vec(vec(any::<u8>(), 1..40), 0..12),
        pieces in vec(1_usize..30, 1..40),
    ) {
        let framing = Framing { message_bytes_max: 40 };
        let mut stream = Vec::new();
        for body in &bodies {
            write_frame(&mut stream, body);
        }
        let mut buffer = Vec::new();
        let mut received: Vec<Vec<u8>> = Vec::new();
        let mut sizes = pieces.iter().cycle();
        let mut left = &stream[..];
        while !left.is_empty() {
            let size = (*sizes.next().unwrap()).min(left.len());
            let (piece, rest) = left.split_at(size);
            left = rest;
            buffer.extend_from_slice(piece);
            while let Some(frame) = framing.decode(&buffer).unwrap() {
                prop_assert_eq!(framing.frame_bytes(&buffer), Ok(Some(frame.consumed)));
                received.push(frame.body.to_vec());
                let consumed = frame.consumed;
                buffer.drain(..consumed);
            }
        }
        prop_assert_eq!(received, bodies);
        prop_assert!(buffer.is_empty());
    }

    #[test]
    fn whatever_a_codec_takes_for_a_frame_it_would_write_so(input in vec(0_u8..9, 0..12), body_bytes_max in 0_usize..9) {
        frame_is_written_as_read(&LengthPrefixed::<u8>::new(), &input, body_bytes_max)?;
        frame_is_written_as_read(&LengthPrefixed::<u8>::counting_itself(), &input, body_bytes_max)?;
        frame_is_written_as_read(&LengthPrefixed::<u16, Big>::new(), &input, body_bytes_max)?;
        frame_is_written_as_read(&LengthPrefixed::<u16, Little>::counting_itself(), &input, body_bytes_max)?;
        frame_is_written_as_read(&LengthPrefixed::<u32, Little>::new(), &input, body_bytes_max)?;
        frame_is_written_as_read(&LengthPrefixed::<u32, Big>::counting_itself(), &input, body_bytes_max)?;
        frame_is_written_as_read(&FixedSize::<5>, &input, body_bytes_max)?;
    }

    #[test]
    fn framing_refuses_exactly_what_is_past_its_limit(length: u32, message_bytes_max in 0..u32::MAX) {
        let framing = Framing { message_bytes_max: message_bytes_max as usize };
        let expected = match length {
            0 => Err(FrameError::Empty),
            length if length > message_bytes_max => {
                let message_bytes_max = message_bytes_max as usize;
                Err(FrameError::TooLarge { announced: length, message_bytes_max })
            }
            _ => Ok(None),
        };
        let header = length.to_le_bytes();
        prop_assert_eq!(framing.decode(&header), expected);
    }
}
