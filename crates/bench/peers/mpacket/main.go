// Runs the rows of `playfield-bench bench packet` with the Go package mpacket. The operations are our
// own, in the form that is verified.
//
// For each line of standard input, which is the name of a row, it prints the time of an operation in
// nanoseconds, with every field compared. Run by scripts/bench-peers, which fetches the package.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/Hucaru/Valhalla/mpacket"
)

const (
	roundMs = 10
	text    = "The quick brown fox jumps over a dog.."
)

// Values that were read are stored here, so that the compiler can't remove the reads.
var (
	sinkBytes  []byte
	sinkString string
	sinkInt    int64
	sinkPacket mpacket.Packet
)

// body runs an operation the given number of times and returns whether what it read was correct.
// Without a comparison it returns true.
type body func(verified bool, times int) bool

type row struct {
	name  string
	bytes int
	run   body
	all   bool
}

func payload(size int) []byte {
	out := make([]byte, size)
	for place := range out {
		out[place] = byte(place*7 + place/256)
	}
	return out
}

func write(put func(p *mpacket.Packet), check func(p mpacket.Packet) bool) body {
	return func(verified bool, times int) bool {
		right := true
		for i := 0; i < times; i++ {
			p := mpacket.NewPacket()
			put(&p)
			if verified {
				right = right && check(p)
			} else {
				sinkPacket = p
			}
		}
		return right
	}
}

func read(p mpacket.Packet, get func(r *mpacket.Reader) int64, expected int64) body {
	return func(verified bool, times int) bool {
		right := true
		for i := 0; i < times; i++ {
			r := mpacket.NewReader(&p, 0)
			value := get(&r)
			if verified {
				right = right && value == expected
			} else {
				sinkInt = value
			}
		}
		return right
	}
}

func of(put func(p *mpacket.Packet)) mpacket.Packet {
	p := mpacket.NewPacket()
	put(&p)
	return p
}

func small(i int) mpacket.Packet {
	p := mpacket.CreateWithOpcode(0x10)
	p.WriteByte(byte(i))
	p.WriteInt16(int16(i))
	p.WriteInt32(int32(i))
	return p
}

func readSmall(p mpacket.Packet) (int32, byte, byte, int16, int32) {
	r := mpacket.NewReader(&p, 0)
	return r.ReadInt32(), r.ReadByte(), r.ReadByte(), r.ReadInt16(), r.ReadInt32()
}

func smallBody(verified bool, times int) bool {
	right := true
	for i := 0; i < times; i++ {
		length, op, kind, x, id := readSmall(small(i))
		if verified {
			right = right && length == 0 && op == 0x10 && kind == byte(i) && x == int16(i) && id == int32(i)
		} else {
			sinkInt = int64(id)
		}
	}
	return right
}

func mediumBody(verified bool, times int) bool {
	const name = "ValkyrieOf013"
	right := true
	for i := 0; i < times; i++ {
		p := mpacket.CreateWithOpcode(0x11)
		p.WriteInt32(int32(i))
		p.WriteString(name)
		p.WriteInt16(int16(i))
		p.WriteInt32(int32(^i))
		for _, stat := range [4]int16{1, 2, 3, int16(i)} {
			p.WriteInt16(stat)
		}
		r := mpacket.NewReader(&p, 0)
		length, op, id := r.ReadInt32(), r.ReadByte(), r.ReadInt32()
		got := r.ReadString(r.ReadInt16())
		level, gold := r.ReadInt16(), r.ReadInt32()
		stats := [4]int16{r.ReadInt16(), r.ReadInt16(), r.ReadInt16(), r.ReadInt16()}
		if verified {
			right = right && length == 0 && op == 0x11 && id == int32(i) && got == name && level == int16(i) &&
				gold == int32(^i) && stats == [4]int16{1, 2, 3, int16(i)}
		} else {
			sinkString, sinkInt = got, int64(stats[3])
		}
	}
	return right
}

func largeBody(verified bool, times int) bool {
	const said = "a text that is thirty-six characters"
	data := payload(512)
	right := true
	for i := 0; i < times; i++ {
		p := mpacket.CreateWithOpcode(0x12)
		p.WriteInt32(int32(i))
		p.WriteString(said)
		for n := 0; n < 10; n++ {
			p.WriteInt32(int32(i))
		}
		p.WriteBytes(data)
		p.WriteInt64(int64(i))
		r := mpacket.NewReader(&p, 0)
		length, op, id := r.ReadInt32(), r.ReadByte(), r.ReadInt32()
		got := r.ReadString(r.ReadInt16())
		var values [10]int32
		for n := range values {
			values[n] = r.ReadInt32()
		}
		raw, at := r.ReadBytes(512), r.ReadInt64()
		if verified {
			right = right && length == 0 && op == 0x12 && id == int32(i) && got == said && bytes.Equal(raw, data) && at == int64(i)
			for _, value := range values {
				right = right && value == int32(i)
			}
		} else {
			sinkString, sinkBytes, sinkInt = got, raw, at
		}
	}
	return right
}

func write100(verified bool, times int) bool {
	right := true
	for i := 0; i < times; i++ {
		p := mpacket.NewPacket()
		for value := 0; value < 100; value++ {
			p.WriteByte(byte(value))
		}
		if verified {
			for value := range p {
				right = right && p[value] == byte(value)
			}
		} else {
			sinkPacket = p
		}
	}
	return right
}

func read100(verified bool, times int) bool {
	p := of(func(p *mpacket.Packet) {
		for value := 0; value < 100; value++ {
			p.WriteByte(byte(value))
		}
	})
	right := true
	for i := 0; i < times; i++ {
		r := mpacket.NewReader(&p, 0)
		for value := 0; value < 100; value++ {
			got := r.ReadByte()
			if verified {
				right = right && got == byte(value)
			} else {
				sinkInt = int64(got)
			}
		}
	}
	return right
}

func thousand() mpacket.Packet {
	p := mpacket.NewPacket()
	for n := 0; n < 1000; n++ {
		p.WriteByte(byte(n))
		p.WriteInt16(int16(n))
		p.WriteInt32(int32(n))
	}
	return p
}

func readThousand(p *mpacket.Packet, verified bool) bool {
	right := true
	r := mpacket.NewReader(p, 0)
	for n := 0; n < 1000; n++ {
		a, b, c := r.ReadByte(), r.ReadInt16(), r.ReadInt32()
		if verified {
			right = right && a == byte(n) && b == int16(n) && c == int32(n)
		} else {
			sinkInt = int64(a) + int64(b) + int64(c)
		}
	}
	return right
}

func write1000(verified bool, times int) bool {
	right := true
	for i := 0; i < times; i++ {
		p := thousand()
		if verified {
			right = right && readThousand(&p, true)
		} else {
			sinkPacket = p
		}
	}
	return right
}

func read1000(verified bool, times int) bool {
	p := thousand()
	right := true
	for i := 0; i < times; i++ {
		right = readThousand(&p, verified) && right
	}
	return right
}

func throughput(size int) body {
	data := payload(size)
	return func(verified bool, times int) bool {
		right := true
		for i := 0; i < times; i++ {
			p := mpacket.CreateWithOpcode(0x20)
			p.WriteBytes(data)
			r := mpacket.NewReader(&p, 0)
			r.Skip(5)
			view := r.GetRestAsBytes()
			if verified {
				right = right && bytes.Equal(view, data)
			} else {
				sinkBytes = view
			}
		}
		return right
	}
}

func encode1047(verified bool, times int) bool {
	data := payload(1024)
	right := true
	for i := 0; i < times; i++ {
		p := mpacket.NewPacket()
		p.WriteInt32(7)
		p.WriteInt16(-8)
		p.WriteInt64(9)
		p.WriteByte(10)
		p.WriteUint64(0x3ff8000000000000)
		p.WriteBytes(data)
		if verified {
			r := mpacket.NewReader(&p, 0)
			right = right && r.ReadInt32() == 7 && r.ReadInt16() == -8 && r.ReadInt64() == 9 && r.ReadByte() == 10 &&
				r.ReadUint64() == 0x3ff8000000000000 && bytes.Equal(r.GetRestAsBytes(), data)
		} else {
			sinkPacket = p
		}
	}
	return right
}

func create(verified bool, times int) bool {
	right := true
	for i := 0; i < times; i++ {
		p := mpacket.CreateWithOpcode(0x14)
		if verified {
			right = right && len(p) == 5 && p[4] == 0x14
		} else {
			sinkPacket = p
		}
	}
	return right
}

func rotating(verified bool, times int) bool {
	var packets [16]mpacket.Packet
	for number := range packets {
		packets[number] = small(number)
	}
	right := true
	for i := 0; i < times; i++ {
		number := i % len(packets)
		_, op, kind, x, id := readSmall(packets[number])
		if verified {
			right = right && op == 0x10 && kind == byte(number) && x == int16(number) && id == int32(number)
		} else {
			sinkInt = int64(id)
		}
	}
	return right
}

func rows() []row {
	u8 := of(func(p *mpacket.Packet) { p.WriteByte(7) })
	i16 := of(func(p *mpacket.Packet) { p.WriteInt16(7) })
	i32 := of(func(p *mpacket.Packet) { p.WriteInt32(7) })
	i64 := of(func(p *mpacket.Packet) { p.WriteInt64(7) })
	said := of(func(p *mpacket.Packet) { p.WriteString(text) })
	kilobyte := payload(1024)
	raw := of(func(p *mpacket.Packet) { p.WriteBytes(kilobyte) })
	length := func(size int) func(mpacket.Packet) bool {
		return func(p mpacket.Packet) bool { return len(p) == size && p[0] == 7 }
	}
	return []row{
		{"write u8", 1, write(func(p *mpacket.Packet) { p.WriteByte(7) }, length(1)), false},
		{"write i16", 2, write(func(p *mpacket.Packet) { p.WriteInt16(7) }, length(2)), false},
		{"write i32", 4, write(func(p *mpacket.Packet) { p.WriteInt32(7) }, length(4)), false},
		{"write i64", 8, write(func(p *mpacket.Packet) { p.WriteInt64(7) }, length(8)), false},
		{"write string", 40, write(func(p *mpacket.Packet) { p.WriteString(text) }, func(p mpacket.Packet) bool { return string(p[2:]) == text }), false},
		{"write 1024 bytes", 1024, write(func(p *mpacket.Packet) { p.WriteBytes(kilobyte) }, func(p mpacket.Packet) bool { return bytes.Equal(p, kilobyte) }), false},
		{"read u8", 1, read(u8, func(r *mpacket.Reader) int64 { return int64(r.ReadByte()) }, 7), false},
		{"read i16", 2, read(i16, func(r *mpacket.Reader) int64 { return int64(r.ReadInt16()) }, 7), false},
		{"read i32", 4, read(i32, func(r *mpacket.Reader) int64 { return int64(r.ReadInt32()) }, 7), false},
		{"read i64", 8, read(i64, func(r *mpacket.Reader) int64 { return r.ReadInt64() }, 7), false},
		{"read string", 40, func(verified bool, times int) bool {
			right := true
			for i := 0; i < times; i++ {
				r := mpacket.NewReader(&said, 0)
				got := r.ReadString(r.ReadInt16())
				if verified {
					right = right && got == text
				} else {
					sinkString = got
				}
			}
			return right
		}, false},
		{"read 1024 bytes", 1024, func(verified bool, times int) bool {
			right := true
			for i := 0; i < times; i++ {
				r := mpacket.NewReader(&raw, 0)
				got := r.ReadBytes(1024)
				if verified {
					right = right && bytes.Equal(got, kilobyte)
				} else {
					sinkBytes = got
				}
			}
			return right
		}, false},
		{"small packet", 12, smallBody, false},
		{"medium packet", 38, mediumBody, false},
		{"large packet", 607, largeBody, false},
		{"100 byte writes", 100, write100, false},
		{"100 byte reads", 100, read100, false},
		{"1000 x (u8 i16 i32) write", 7000, write1000, false},
		{"1000 x (u8 i16 i32) read", 7000, read1000, false},
		{"10 KB payload", 10 << 10, throughput(10 << 10), false},
		{"create with opcode", 5, create, false},
		{"decode rotating", 12, rotating, false},
		{"write, all cores", 100, write100, true},
		{"read, all cores", 100, read100, true},
		{"small, all cores", 12, smallBody, true},
		{"medium, all cores", 38, mediumBody, true},
		{"large, all cores", 607, largeBody, true},
		{"throughput 64 B", 64, throughput(64), false},
		{"throughput 512 B", 512, throughput(512), false},
		{"throughput 4 KB", 4 << 10, throughput(4 << 10), false},
		{"throughput 64 KB", 64 << 10, throughput(64 << 10), false},
		{"encode 1047 B", 1047, encode1047, false},
	}
}

// run runs an operation the given number of times, on all cores at once if the row requires it.
func run(r row, verified bool, times int) (time.Duration, float64, bool) {
	if !r.all {
		began := time.Now()
		right := r.run(verified, times)
		return time.Since(began), 1, right
	}
	cores := runtime.NumCPU()
	var waiting sync.WaitGroup
	rights := make([]bool, cores)
	began := time.Now()
	for core := range rights {
		waiting.Add(1)
		go func() {
			defer waiting.Done()
			rights[core] = r.run(verified, times)
		}()
	}
	waiting.Wait()
	took := time.Since(began)
	right := true
	for _, one := range rights {
		right = right && one
	}
	return took, float64(cores), right
}

// version returns the version of the package that this program is built with.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, module := range info.Deps {
			if strings.Contains(module.Path, "Valhalla") {
				return module.Version
			}
		}
	}
	return "unknown"
}

// calibrated returns how many operations take about as long as a round should.
func calibrated(r row) int {
	for times := 1; ; times *= 2 {
		took, _, _ := run(r, true, times)
		if took*4 > roundMs*time.Millisecond {
			return int(float64(times)*float64(roundMs*time.Millisecond)/float64(took)) + 1
		}
	}
}

func main() {
	fmt.Printf("{\"mpacket\":%q}\n", version()+", "+runtime.Version())
	times := map[string]int{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		for _, r := range rows() {
			if r.name != lines.Text() {
				continue
			}
			if times[r.name] == 0 {
				times[r.name] = calibrated(r)
			}
			took, atOnce, right := run(r, true, times[r.name])
			ns := float64(took.Nanoseconds()) / float64(times[r.name]) / atOnce
			fmt.Printf("{\"value\":%g,\"verified\":%t}\n", ns, right)
		}
	}
}
