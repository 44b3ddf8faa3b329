#include "runtime/data/standard_input.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>

#include <unistd.h>

#include "runtime/data/compressed.hpp"

namespace cudp {
namespace {

/// Reads the standard input. Keeps its first bytes, which head() returns, so that open_input() can
/// recognise compressed data from them.
class StandardInput final : public ByteReader {
 public:
  StandardInput() : ByteReader("standard input") { head_bytes_ = read_all(head_); }

  std::uint64_t reservable() const override { return 0; }  // the amount of input is unknown
  std::span<const std::uint8_t> head() const { return std::span(head_).first(head_bytes_); }

 private:
  std::size_t fill(std::span<std::uint8_t> out) override {
    const std::size_t kept = std::min(out.size(), head_bytes_ - given_);
    std::copy_n(head_.begin() + static_cast<std::ptrdiff_t>(given_), kept, out.begin());
    given_ += kept;
    return kept + read_all(out.subspan(kept));
  }

  std::size_t read_all(std::span<std::uint8_t> out) const {
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t n = ::read(STDIN_FILENO, out.data() + done, out.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0)
        bad_input(name(), "byte " + std::to_string(position() + done), "a readable byte",
                  std::strerror(errno));
      if (n == 0) break;
      done += static_cast<std::size_t>(n);
    }
    return done;
  }

  std::array<std::uint8_t, kCompressionMagic> head_{};
  std::size_t head_bytes_ = 0;
  std::size_t given_ = 0;  ///< bytes of head_ that were returned
};

}  // namespace

std::unique_ptr<ByteReader> open_input(const std::filesystem::path& path, Busy* progress,
                                       Compression compression) {
  if (path != kStandardInput) return open_bytes(path, progress, compression);
  auto input = std::make_unique<StandardInput>();
  if (compression == Compression::by_name) return input;  // it has no name
  std::array<std::uint8_t, kCompressionMagic> head{};
  std::ranges::copy(input->head(), head.begin());
  const std::size_t n = input->head().size();
  return decompressed(std::move(input), std::span(head).first(n));
}

}  // namespace cudp
