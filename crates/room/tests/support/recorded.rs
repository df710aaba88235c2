//! Recordings in memory.

use std::sync::{Arc, Mutex};

use playfield_room::AnyRoom;
use playfield_room::recording::{
    About, BlockKind, Files, Recorder, RecorderSettings, RecordingWriter, Why,
};

/// The files of a recorder, in the order in which they were begun, and the names of messages that
/// they have.
#[derive(Clone, Default)]
pub(crate) struct Recorded(Arc<Mutex<Vec<File>>>, pub(crate) Arc<[String]>);

struct File {
    writer: RecordingWriter,
    bytes: Vec<u8>,
    is_whole: bool,
}

impl Recorded {
    /// Records a room.
    pub(crate) fn record(
        &self,
        room: Box<dyn AnyRoom>,
        settings: RecorderSettings,
    ) -> Box<dyn AnyRoom> {
        Box::new(Recorder::new(room, Box::new(self.clone()), settings))
    }

    /// The files, and whether each is whole.
    pub(crate) fn files(&self) -> Vec<(Vec<u8>, bool)> {
        let files = self.0.lock().unwrap();
        files.iter().map(|file| (file.bytes.clone(), file.is_whole)).collect()
    }
}

impl Files for Recorded {
    fn begin(&mut self, why: &Why) {
        let about = About {
            room_type: "test".into(),
            room_id: "room".into(),
            key: Some("key".into()),
            fingerprint: 7,
            build: "tests".into(),
            unix_ms: 1,
            why: why.to_string(),
            messages: Arc::clone(&self.1),
        };
        let mut bytes = Vec::new();
        let writer = RecordingWriter::begin(&about, &mut bytes);
        self.0.lock().unwrap().push(File { writer, bytes, is_whole: false });
    }

    fn block(&mut self, kind: BlockKind, content: Vec<u8>) {
        let mut files = self.0.lock().unwrap();
        let File { writer, bytes, .. } = files.last_mut().expect("a file was begun");
        writer.block(kind, &content, bytes);
    }

    fn end(&mut self) {
        self.0.lock().unwrap().last_mut().expect("a file was begun").is_whole = true;
    }
}
