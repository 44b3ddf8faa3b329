#include "runtime/data/bytes.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/busy.hpp"
#include "runtime/base/error.hpp"
#include "runtime/data/compressed.hpp"
#include "runtime/data/utf8.hpp"

namespace cudp {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

/// Reads the bytes of a file as they are, without decompressing them.
class FileReader final : public ByteReader {
 public:
  FileReader(const std::filesystem::path& path, Busy* progress)
      : ByteReader(path.string()), progress_(progress) {
    file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file_ < 0) bad_input(name(), "", "a file that can be read", reason(errno));
    struct stat about {};
    if (::fstat(file_, &about) != 0 || !S_ISREG(about.st_mode)) {
      ::close(file_);
      bad_input(name(), "", "a file", S_ISDIR(about.st_mode) ? "a folder" : "something else");
    }
    size_ = static_cast<std::uint64_t>(about.st_size);
  }
  ~FileReader() override { ::close(file_); }
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;
  FileReader(FileReader&&) = delete;
  FileReader& operator=(FileReader&&) = delete;

  std::uint64_t reservable() const override { return size_; }
  bool is_file() const override { return true; }

  std::size_t head(std::span<std::uint8_t> out) const {
    const ssize_t n = ::pread(file_, out.data(), out.size(), 0);
    return n > 0 ? static_cast<std::size_t>(n) : 0;
  }

 private:
  std::size_t fill(std::span<std::uint8_t> out) override {
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t n = ::read(file_, out.data() + done, out.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0)
        bad_input(name(), "byte " + std::to_string(position() + done), "a readable byte",
                  reason(errno));
      if (n == 0) break;
      done += static_cast<std::size_t>(n);
    }
    show(done);
    return done;
  }

  std::uint64_t leave_out(std::uint64_t count) override {
    const std::uint64_t left = size_ > position() ? size_ - position() : 0;
    const auto n = static_cast<off_t>(std::min(count, left));
    if (::lseek(file_, n, SEEK_CUR) < 0)
      bad_input(name(), "byte " + std::to_string(position()), "a readable byte", reason(errno));
    show(static_cast<std::uint64_t>(n));
    return static_cast<std::uint64_t>(n);
  }

  /// Shows on the terminal the fraction of the file that has been read. more: number of bytes that
  /// were read or skipped, but are not counted in position() yet.
  void show(std::uint64_t more) const {
    if (progress_ == nullptr || size_ == 0) return;
    progress_->done(
        std::min(1.0, static_cast<double>(position() + more) / static_cast<double>(size_)));
  }

  int file_ = -1;
  std::uint64_t size_ = 0;
  Busy* progress_;
};

class MemoryReader final : public ByteReader {
 public:
  MemoryReader(std::string name, std::span<const std::uint8_t> bytes)
      : ByteReader(std::move(name)), bytes_(bytes) {}

  std::uint64_t reservable() const override { return bytes_.size(); }

 private:
  std::size_t fill(std::span<std::uint8_t> out) override {
    const std::size_t n = std::min(out.size(), bytes_.size());
    std::copy_n(bytes_.begin(), n, out.begin());
    bytes_ = bytes_.subspan(n);
    return n;
  }

  std::span<const std::uint8_t> bytes_;
};

}  // namespace

std::size_t ByteReader::read(std::span<std::uint8_t> out) {
  const std::size_t n = fill(out);
  position_ += n;
  return n;
}

std::uint64_t ByteReader::skip(std::uint64_t count) {
  const std::uint64_t n = leave_out(count);
  position_ += n;
  return n;
}

/// Skips up to `count` bytes by reading them, because compressed data has no random access. Returns
/// how many were skipped.
std::uint64_t ByteReader::leave_out(std::uint64_t count) {
  std::vector<std::uint8_t> passed(std::min<std::uint64_t>(count, std::uint64_t{256} << 10));
  std::uint64_t done = 0;
  while (done < count) {
    const std::span part = std::span(passed).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(count - done, passed.size())));
    const std::size_t n = fill(part);
    done += n;
    if (n < part.size()) break;
  }
  return done;
}

std::unique_ptr<ByteReader> open_bytes(const std::filesystem::path& path, Busy* progress,
                                       Compression compression) {
  auto file = std::make_unique<FileReader>(path, progress);
  if (compression == Compression::by_name) return decompressed_by_name(std::move(file));
  std::array<std::uint8_t, kCompressionMagic> head{};
  const std::size_t n = file->head(head);
  return decompressed(std::move(file), std::span(head).first(n));
}

std::unique_ptr<ByteReader> memory_bytes(std::string name, std::span<const std::uint8_t> bytes) {
  return decompressed(std::make_unique<MemoryReader>(std::move(name), bytes),
                      bytes.first(std::min(bytes.size(), kCompressionMagic)));
}

std::uint64_t append_bytes(ByteReader& from, std::uint64_t count, std::vector<std::uint8_t>& to) {
  // Number of bytes by which `to` grows at a time. std::vector first writes zeros to these bytes;
  // the step is small enough that they are still in the cache when the data overwrite them.
  constexpr std::uint64_t kStep = std::uint64_t{256} << 10;
  to.reserve(to.size() + std::min(count, from.reservable()));
  std::uint64_t done = 0;
  while (done < count) {
    const std::size_t step = std::min(count - done, kStep);
    const std::size_t old = to.size();
    to.resize(old + step);
    const std::size_t n = from.read(std::span(to).subspan(old));
    done += n;
    if (n < step) {
      to.resize(old + n);
      break;
    }
  }
  return done;
}

void expect_end(ByteReader& reader, std::string_view after) {
  std::uint8_t byte = 0;
  const std::uint64_t at = reader.position();
  if (reader.read(std::span(&byte, 1)) != 0)
    bad_input(reader.name(), "byte " + std::to_string(at),
              "the end of the file after " + std::string(after), "more bytes");
}

void bad_input(std::string_view file, std::string_view place, std::string_view expected,
               std::string_view found) {
  std::string line(file);
  if (!place.empty()) line.append(", ").append(place);
  line.append(": expected ").append(expected).append(", found ").append(found);
  throw InputError(line);
}

std::string shown(std::string_view text, std::size_t longest) {
  std::string out = "'";
  std::size_t characters = 0;
  while (!text.empty() && characters++ < longest) {
    const Utf8Character c = first_character(text);
    const std::string_view bytes = text.substr(0, std::max<std::size_t>(c.bytes, 1));
    out += c.bytes > 0 && is_printable(c.code) ? bytes : std::string_view("?");
    text.remove_prefix(bytes.size());
  }
  return out + (text.empty() ? "'" : "...'");
}

}  // namespace cudp
