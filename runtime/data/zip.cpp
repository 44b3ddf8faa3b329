#include "runtime/data/zip.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

namespace cudp {
namespace {

/// Signatures (first four bytes) of the records of a ZIP file: the header before a member's
/// content; a member's entry in the directory; the record at the end of the directory; and the two
/// records of large archives (ZIP64) that precede it, end record and locator.
constexpr std::uint32_t kLocalHeader = 0x04034b50;
constexpr std::uint32_t kDirectoryEntry = 0x02014b50;
constexpr std::uint32_t kEnd = 0x06054b50;
constexpr std::uint32_t kWideEnd = 0x06064b50;
constexpr std::uint32_t kWideLocator = 0x07064b50;
/// Sizes of the records of a ZIP file (local header, entry of the directory, end record, and the
/// two ZIP64 records), without their parts of variable length [bytes].
constexpr std::size_t kLocalSize = 30, kEntrySize = 46, kEndSize = 22, kWideEndSize = 56,
                      kLocatorSize = 20;
/// Maximum size of an archive's directory, the list of its members [bytes].
constexpr std::uint64_t kLargestDirectory = std::uint64_t{16} << 20;
constexpr std::uint32_t kInExtra = 0xffffffff;  // this size or offset is in the extra field instead
/// Identifier of the extra field with 64-bit sizes and offsets.
constexpr std::uint16_t kWideExtra = 1;
/// Numbers by which an archive states how a member is compressed: not at all, or with deflate.
constexpr std::uint16_t kStored = 0, kDeflated = 8;
/// Bit in a member's flags that is set if the member is encrypted.
constexpr std::uint16_t kEncrypted = 1;

/// Reads a little-endian number of type T at offset `at`. Requires that all its bytes are within
/// `bytes`.
template <class T>
T number_at(std::span<const std::uint8_t> bytes, std::size_t at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value = static_cast<T>(value | static_cast<T>(static_cast<T>(bytes[at + i]) << (8 * i)));
  return value;
}

[[noreturn]] void refuse(const RandomAccessBytes& bytes, std::uint64_t at,
                         const std::string& expected, const std::string& found) {
  bad_input(bytes.name(), "byte " + std::to_string(at), expected, found);
}

/// Throws InputError if the file `bytes` ends before offset at + size. what: description of the
/// bytes from `at` on, for the message.
void need(const RandomAccessBytes& bytes, std::uint64_t at, std::uint64_t size, const char* what) {
  if (at > bytes.size() || size > bytes.size() - at)
    refuse(bytes, at, std::to_string(size) + " bytes of " + what, "the end of the file");
}

class RandomAccessFile final : public RandomAccessBytes {
 public:
  explicit RandomAccessFile(const std::filesystem::path& path) : RandomAccessBytes(path.string()) {
    file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file_ < 0)
      bad_input(name(), "", "a file that can be read", std::generic_category().message(errno));
    struct stat about {};
    if (::fstat(file_, &about) != 0 || !S_ISREG(about.st_mode)) {
      ::close(file_);
      bad_input(name(), "", "a file", "something else");
    }
    size_ = static_cast<std::uint64_t>(about.st_size);
  }
  ~RandomAccessFile() override { ::close(file_); }
  RandomAccessFile(const RandomAccessFile&) = delete;
  RandomAccessFile& operator=(const RandomAccessFile&) = delete;
  RandomAccessFile(RandomAccessFile&&) = delete;
  RandomAccessFile& operator=(RandomAccessFile&&) = delete;

  std::uint64_t size() const override { return size_; }

  void read(std::uint64_t at, std::span<std::uint8_t> out) const override {
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t n =
          ::pread(file_, out.data() + done, out.size() - done, static_cast<off_t>(at + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0)
        refuse(*this, at + done, "a readable byte",
               n < 0 ? std::generic_category().message(errno) : "the end of the file");
      done += static_cast<std::size_t>(n);
    }
  }

 private:
  int file_ = -1;
  std::uint64_t size_ = 0;
};

class RandomAccessMemory final : public RandomAccessBytes {
 public:
  RandomAccessMemory(std::string name, std::span<const std::uint8_t> bytes)
      : RandomAccessBytes(std::move(name)), bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  void read(std::uint64_t at, std::span<std::uint8_t> out) const override {
    need(*this, at, out.size(), "content");
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at), out.size(), out.begin());
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

/// Position of a member's content in the archive, its size there and when unpacked [bytes], and its
/// CRC-32.
struct MemberLocation {
  std::uint64_t at = 0;
  std::uint64_t packed = 0;
  std::uint64_t unpacked = 0;
  std::uint32_t crc = 0;
};

/// Reads a member of the archive and checks its content against its CRC-32.
class MemberReader : public ByteReader {
 public:
  MemberReader(const RandomAccessBytes& bytes, std::string name, const MemberLocation& place)
      : ByteReader(std::move(name)), bytes_(bytes), place_(place) {}

 protected:
  virtual std::size_t unpack(std::span<std::uint8_t> out) = 0;

  const RandomAccessBytes& bytes_;
  MemberLocation place_;

 private:
  std::size_t fill(std::span<std::uint8_t> out) override {
    const std::size_t n = unpack(out);
    for (std::size_t done = 0; done < n;) {
      const std::size_t part = std::min<std::size_t>(n - done, std::size_t{1} << 30);
      crc_ = crc32(crc_, out.data() + done, static_cast<uInt>(part));
      done += part;
    }
    given_ += n;
    if (given_ == place_.unpacked && n > 0 && crc_ != place_.crc)
      bad_input(name(), "", "the content that its CRC-32 is of", "damage");
    return n;
  }

  std::uint64_t given_ = 0;
  uLong crc_ = 0;
};

/// Reads a member that is stored without compression.
class StoredReader final : public MemberReader {
 public:
  using MemberReader::MemberReader;
  std::uint64_t reservable() const override { return place_.unpacked; }

 private:
  std::size_t unpack(std::span<std::uint8_t> out) override {
    const std::size_t n = std::min<std::uint64_t>(out.size(), place_.unpacked - done_);
    bytes_.read(place_.at + done_, out.first(n));
    done_ += n;
    return n;
  }

  std::uint64_t done_ = 0;
};

/// Reads a member that is compressed with deflate.
class DeflatedReader final : public MemberReader {
 public:
  DeflatedReader(const RandomAccessBytes& bytes, std::string name, const MemberLocation& place)
      : MemberReader(bytes, std::move(name), place), buffer_(std::size_t{128} << 10) {
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~DeflatedReader() override { inflateEnd(&stream_); }
  DeflatedReader(const DeflatedReader&) = delete;
  DeflatedReader& operator=(const DeflatedReader&) = delete;
  DeflatedReader(DeflatedReader&&) = delete;
  DeflatedReader& operator=(DeflatedReader&&) = delete;

  std::uint64_t reservable() const override {
    constexpr std::uint64_t kMaxRatio = 1032;  // maximum compression ratio of deflate
    return std::min(place_.unpacked, place_.packed * kMaxRatio);
  }

 private:
  std::size_t unpack(std::span<std::uint8_t> out) override {
    const std::size_t wanted = std::min<std::uint64_t>(out.size(), place_.unpacked - done_);
    std::size_t n = 0;
    while (n < wanted) n += inflate_some(out.subspan(n, wanted - n));
    done_ += n;
    return n;
  }

  std::size_t inflate_some(std::span<std::uint8_t> out) {
    if (stream_.avail_in == 0) {
      const std::size_t part = std::min<std::uint64_t>(buffer_.size(), place_.packed - taken_);
      bytes_.read(place_.at + taken_, std::span(buffer_).first(part));
      taken_ += part;
      stream_.next_in = buffer_.data();
      stream_.avail_in = static_cast<uInt>(part);
    }
    if (ended_) fail("the rest of a deflated member", "its end");
    stream_.next_out = out.data();
    stream_.avail_out = static_cast<uInt>(std::min(out.size(), std::size_t{1} << 30));
    const uInt asked = stream_.avail_out;
    const int rc = inflate(&stream_, Z_NO_FLUSH);
    if (rc == Z_MEM_ERROR) throw std::bad_alloc();
    if (rc == Z_STREAM_END)
      ended_ = true;
    else if (rc != Z_OK && rc != Z_BUF_ERROR)
      fail("deflated data", "damage");
    const bool stuck = stream_.avail_out == asked && stream_.avail_in == 0;
    if (stuck && taken_ == place_.packed) fail("the rest of a deflated member", "its end");
    return asked - stream_.avail_out;
  }

  [[noreturn]] void fail(const char* expected, const char* found) const {
    bad_input(name(), "byte " + std::to_string(position() + done_), expected, found);
  }

  std::vector<std::uint8_t> buffer_;
  z_stream stream_{};
  std::uint64_t taken_ = 0;
  std::uint64_t done_ = 0;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<RandomAccessBytes> open_random_access(const std::filesystem::path& path) {
  return std::make_unique<RandomAccessFile>(path);
}

std::unique_ptr<RandomAccessBytes> memory_random_access(std::string name,
                                                        std::span<const std::uint8_t> bytes) {
  return std::make_unique<RandomAccessMemory>(std::move(name), bytes);
}

ZipArchive::ZipArchive(const RandomAccessBytes& bytes) : bytes_(bytes) {
  read_directory(find_directory());
}

/// Returns the position and size of the archive's directory, as stated in the end record. The end
/// record is at the end of the file; only a comment may follow it.
ZipArchive::Directory ZipArchive::find_directory() const {
  constexpr std::uint64_t kLongestComment = 0xffff;
  const std::uint64_t size = bytes_.size();
  if (size < kEndSize) refuse(bytes_, 0, "a zip archive", std::to_string(size) + " bytes");
  const std::uint64_t from = size - std::min(size, kEndSize + kLongestComment);
  std::vector<std::uint8_t> tail(size - from);
  bytes_.read(from, tail);
  for (std::size_t i = tail.size() - kEndSize + 1; i-- > 0;) {
    if (number_at<std::uint32_t>(tail, i) != kEnd) continue;
    const std::uint64_t comment = number_at<std::uint16_t>(tail, i + 20);
    if (i + kEndSize + comment != tail.size()) continue;
    Directory d{number_at<std::uint32_t>(tail, i + 16), number_at<std::uint32_t>(tail, i + 12),
                number_at<std::uint16_t>(tail, i + 10)};
    if (d.at == kInExtra || d.size == kInExtra || d.members == 0xffff) d = wide_directory(from + i);
    return d;
  }
  refuse(bytes_, size, "the directory of a zip archive at the end of the file", "none");
}

ZipArchive::Directory ZipArchive::wide_directory(std::uint64_t end_record) const {
  if (end_record < kLocatorSize) refuse(bytes_, end_record, "a zip64 locator", "none");
  std::array<std::uint8_t, kLocatorSize> locator{};
  bytes_.read(end_record - kLocatorSize, locator);
  if (number_at<std::uint32_t>(locator, 0) != kWideLocator)
    refuse(bytes_, end_record - kLocatorSize, "a zip64 locator", "something else");
  const auto at = number_at<std::uint64_t>(locator, 8);
  need(bytes_, at, kWideEndSize, "a zip64 directory record");
  std::array<std::uint8_t, kWideEndSize> record{};
  bytes_.read(at, record);
  if (number_at<std::uint32_t>(record, 0) != kWideEnd)
    refuse(bytes_, at, "a zip64 directory record", "something else");
  return {number_at<std::uint64_t>(record, 48), number_at<std::uint64_t>(record, 40),
          number_at<std::uint64_t>(record, 32)};
}

void ZipArchive::read_directory(const Directory& directory) {
  if (directory.size > kLargestDirectory)
    refuse(bytes_, directory.at, "a directory of at most 16 MiB", std::to_string(directory.size));
  need(bytes_, directory.at, directory.size, "the directory");
  std::vector<std::uint8_t> all(directory.size);
  bytes_.read(directory.at, all);
  std::span<const std::uint8_t> rest(all);
  for (std::uint64_t i = 0; i < directory.members; ++i) {
    const std::uint64_t at = directory.at + (all.size() - rest.size());
    if (rest.size() < kEntrySize || number_at<std::uint32_t>(rest, 0) != kDirectoryEntry)
      refuse(bytes_, at, "an entry of the zip directory", "none");
    const std::size_t name = number_at<std::uint16_t>(rest, 28);
    const std::size_t extra = number_at<std::uint16_t>(rest, 30);
    const std::size_t comment = number_at<std::uint16_t>(rest, 32);
    if (rest.size() - kEntrySize < name + extra + comment)
      refuse(bytes_, at, "a whole entry of the zip directory", "its end");
    Member m;
    m.name.assign(reinterpret_cast<const char*>(rest.data()) + kEntrySize, name);
    m.flags = number_at<std::uint16_t>(rest, 8);
    m.method = number_at<std::uint16_t>(rest, 10);
    m.crc = number_at<std::uint32_t>(rest, 16);
    m.packed = number_at<std::uint32_t>(rest, 20);
    m.unpacked = number_at<std::uint32_t>(rest, 24);
    m.header = number_at<std::uint32_t>(rest, 42);
    read_wide_sizes(m, rest.subspan(kEntrySize + name, extra));
    members_.push_back(std::move(m));
    rest = rest.subspan(kEntrySize + name + extra + comment);
  }
}

/// Reads the 64-bit sizes and offset of a member (ZIP64) from the extra field of its directory
/// entry. The extra field has, in the standard's order, only those values whose 32-bit field in the
/// entry is 0xffffffff. member: the entry, with its 32-bit values. extra: its extra field.
void ZipArchive::read_wide_sizes(Member& member, std::span<const std::uint8_t> extra) const {
  while (extra.size() >= 4) {
    const auto kind = number_at<std::uint16_t>(extra, 0);
    const std::size_t size = number_at<std::uint16_t>(extra, 2);
    extra = extra.subspan(4);
    if (size > extra.size()) return;
    std::span<const std::uint8_t> field = extra.first(size);
    extra = extra.subspan(size);
    if (kind != kWideExtra) continue;
    for (std::uint64_t* const value : {&member.unpacked, &member.packed, &member.header}) {
      if (*value != kInExtra || field.size() < 8) continue;
      *value = number_at<std::uint64_t>(field, 0);
      field = field.subspan(8);
    }
  }
}

std::vector<std::string> ZipArchive::names() const {
  std::vector<std::string> out;
  out.reserve(members_.size());
  for (const Member& m : members_) out.push_back(m.name);
  return out;
}

const ZipArchive::Member* ZipArchive::find(std::string_view name) const {
  const auto found = std::ranges::find(members_, name, &Member::name);
  return found == members_.end() ? nullptr : &*found;
}

bool ZipArchive::has(std::string_view name) const { return find(name) != nullptr; }

std::unique_ptr<ByteReader> ZipArchive::open(std::string_view name) const {
  const Member* const m = find(name);
  if (m == nullptr) bad_input(bytes_.name(), "", "a member " + shown(name), "none of that name");
  const std::string place = bytes_.name() + ", member " + shown(name);
  if ((m->flags & kEncrypted) != 0) bad_input(place, "", "no encryption", "an encrypted member");
  if (m->method != kStored && m->method != kDeflated)
    bad_input(place, "", "a stored or deflated member",
              "compression method " + std::to_string(m->method));
  need(bytes_, m->header, kLocalSize, "a member's header");
  std::array<std::uint8_t, kLocalSize> local{};
  bytes_.read(m->header, local);
  if (number_at<std::uint32_t>(local, 0) != kLocalHeader)
    refuse(bytes_, m->header, "the header of member " + shown(name), "something else");
  const std::uint64_t at = m->header + kLocalSize + number_at<std::uint16_t>(local, 26) +
                           number_at<std::uint16_t>(local, 28);
  need(bytes_, at, m->packed, "a member");
  const MemberLocation content{at, m->packed, m->unpacked, m->crc};
  if (m->method == kDeflated) return std::make_unique<DeflatedReader>(bytes_, place, content);
  if (m->packed != m->unpacked)
    bad_input(place, "", "as many bytes stored as it has", "another number");
  return std::make_unique<StoredReader>(bytes_, place, content);
}

}  // namespace cudp
