#include "runtime/data/compressed.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <lzma.h>
#include <zlib.h>

#include "runtime/base/error.hpp"

namespace cudp {
namespace {

/// Size of the buffer of compressed bytes [bytes].
constexpr std::size_t kBuffer = std::size_t{128} << 10;
// Expected maximum compression ratio of images and tables. Data that compresses more costs only
// copies when the buffer grows.
constexpr std::uint64_t kLikelyRatio = 32;
// Memory limit for xz. xz -9 needs 65 MiB; a header that requests gigabytes is refused.
constexpr std::uint64_t kXzMemory = std::uint64_t{256} << 20;

/// Reads the bytes of a compressed file into a buffer, from which a decoder takes them.
class Source {
 public:
  explicit Source(std::unique_ptr<ByteReader> raw) : raw_(std::move(raw)), buffer_(kBuffer) {}

  /// Reads more bytes from the file if the buffer is empty. Returns whether the buffer has any
  /// bytes afterwards.
  bool refill() {
    if (!left_.empty()) return true;
    if (ended_) return false;
    const std::size_t n = raw_->read(buffer_);
    ended_ = n < buffer_.size();
    left_ = std::span(buffer_).first(n);
    return n > 0;
  }

  std::span<std::uint8_t> left() const { return left_; }
  void consume(std::size_t n) { left_ = left_.subspan(n); }
  std::uint64_t reservable() const { return raw_->reservable() * kLikelyRatio; }

  [[noreturn]] void fail(const std::string& expected, const std::string& found) const {
    bad_input(raw_->name(),
              "byte " + std::to_string(raw_->position() - left_.size()) + " of the compressed file",
              expected, found);
  }

 private:
  std::unique_ptr<ByteReader> raw_;
  std::vector<std::uint8_t> buffer_;
  std::span<std::uint8_t> left_;
  bool ended_ = false;
};

/// Reads the decompressed content of a file that is compressed with gzip.
class GzipReader final : public ByteReader {
 public:
  explicit GzipReader(std::unique_ptr<ByteReader> raw)
      : ByteReader(raw->name()), source_(std::move(raw)) {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~GzipReader() override { inflateEnd(&stream_); }
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;
  GzipReader(GzipReader&&) = delete;
  GzipReader& operator=(GzipReader&&) = delete;

  std::uint64_t reservable() const override { return source_.reservable(); }

 private:
  std::size_t fill(std::span<std::uint8_t> out) override {
    std::size_t done = 0;
    while (done < out.size() && next_member()) {
      if (!source_.refill())
        source_.fail("the rest of a gzip stream", "the end of the file (truncated?)");
      done += inflate_some(out.subspan(done));
    }
    return done;
  }

  /// Starts to decompress the next gzip member of the file; a file may have several. Returns false
  /// at the end of the file.
  bool next_member() {
    if (inside_) return true;
    if (!source_.refill()) return false;
    if (source_.left()[0] != 0x1f) {
      if (!started_) source_.fail("gzip data, as the file's name states", "something else");
      source_.fail("the end of the file after the gzip stream", "trailing bytes");
    }
    inflateReset(&stream_);
    inside_ = started_ = true;
    return true;
  }

  std::size_t inflate_some(std::span<std::uint8_t> out) {
    constexpr std::size_t kMaxPart = std::size_t{1} << 30;  // zlib counts in 32 bits
    const std::span<std::uint8_t> in = source_.left();
    stream_.next_in = in.data();
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = out.data();
    stream_.avail_out = static_cast<uInt>(std::min(out.size(), kMaxPart));
    const uInt asked = stream_.avail_out;
    const int rc = inflate(&stream_, Z_NO_FLUSH);
    source_.consume(in.size() - stream_.avail_in);
    if (rc == Z_MEM_ERROR) throw std::bad_alloc();
    if (rc == Z_STREAM_END)
      inside_ = false;
    else if (rc != Z_OK && rc != Z_BUF_ERROR)
      source_.fail("gzip data", std::string("damage (") + (stream_.msg ? stream_.msg : "?") + ")");
    return asked - stream_.avail_out;
  }

  Source source_;
  z_stream stream_{};
  bool started_ = false;
  bool inside_ = false;
};

class XzReader final : public ByteReader {
 public:
  explicit XzReader(std::unique_ptr<ByteReader> raw)
      : ByteReader(raw->name()), source_(std::move(raw)) {
    if (lzma_stream_decoder(&stream_, kXzMemory, LZMA_CONCATENATED) != LZMA_OK)
      throw std::bad_alloc();
  }
  ~XzReader() override { lzma_end(&stream_); }
  XzReader(const XzReader&) = delete;
  XzReader& operator=(const XzReader&) = delete;
  XzReader(XzReader&&) = delete;
  XzReader& operator=(XzReader&&) = delete;

  std::uint64_t reservable() const override { return source_.reservable(); }

 private:
  std::size_t fill(std::span<std::uint8_t> out) override {
    stream_.next_out = out.data();
    stream_.avail_out = out.size();
    while (stream_.avail_out > 0 && !ended_) {
      const bool more = source_.refill();
      const std::span<std::uint8_t> in = source_.left();
      stream_.next_in = in.data();
      stream_.avail_in = in.size();
      const lzma_ret rc = lzma_code(&stream_, more ? LZMA_RUN : LZMA_FINISH);
      source_.consume(in.size() - stream_.avail_in);
      judge(rc, more);
    }
    return out.size() - stream_.avail_out;
  }

  void judge(lzma_ret rc, bool more) {
    switch (rc) {
      case LZMA_OK:
        return;
      case LZMA_STREAM_END:
        ended_ = true;
        return;
      case LZMA_MEM_ERROR:
        throw std::bad_alloc();
      case LZMA_BUF_ERROR:
        if (more) return;
        source_.fail("the rest of an xz stream", "the end of the file (truncated?)");
      case LZMA_MEMLIMIT_ERROR:
        source_.fail("an xz stream that unpacks in 256 MiB of memory", "one that needs more");
      case LZMA_OPTIONS_ERROR:
        source_.fail("xz data with known options", "options this liblzma does not know");
      default:
        source_.fail("xz data", "damage or trailing bytes");
    }
  }

  Source source_;
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool ended_ = false;
};

bool starts_with(std::span<const std::uint8_t> head, std::span<const std::uint8_t> magic) {
  return head.size() >= magic.size() && std::equal(magic.begin(), magic.end(), head.begin());
}

}  // namespace

std::unique_ptr<ByteReader> decompressed(std::unique_ptr<ByteReader> raw,
                                         std::span<const std::uint8_t> head) {
  constexpr std::array<std::uint8_t, 2> kGzip = {0x1f, 0x8b};
  constexpr std::array<std::uint8_t, kCompressionMagic> kXz = {0xfd, '7', 'z', 'X', 'Z', 0x00};
  if (starts_with(head, kGzip)) return std::make_unique<GzipReader>(std::move(raw));
  if (starts_with(head, kXz)) return std::make_unique<XzReader>(std::move(raw));
  return raw;
}

std::unique_ptr<ByteReader> decompressed_by_name(std::unique_ptr<ByteReader> raw) {
  if (raw->name().ends_with(".gz")) return std::make_unique<GzipReader>(std::move(raw));
  if (raw->name().ends_with(".xz")) return std::make_unique<XzReader>(std::move(raw));
  return raw;
}

}  // namespace cudp
