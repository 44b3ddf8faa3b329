#include "runtime/gate/transcript.hpp"

#include <cerrno>
#include <cstring>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.hpp"

namespace cudp {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error("transcript: " + what + ": " + std::strerror(errno));
}

template <class T>
std::vector<double> numbers(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return {values.begin(), values.end()};
}

std::vector<double> numbers(NumberKind kind, std::span<const std::byte> bytes) {
  switch (kind) {
    case NumberKind::float32:
      return numbers<float>(bytes);
    case NumberKind::float64:
      return numbers<double>(bytes);
    case NumberKind::index:
      break;
  }
  return numbers<std::size_t>(bytes);
}

}  // namespace

TranscriptMemory::TranscriptMemory() : file_(::memfd_create("transcript", MFD_CLOEXEC)) {
  if (file_ < 0) refuse("cannot create a file in memory");
  if (::fchmod(file_, 0600) != 0) {
    const int reason = errno;
    ::close(file_);
    errno = reason;
    refuse("cannot set its permissions");
  }
}

TranscriptMemory::~TranscriptMemory() { ::close(file_); }

std::string TranscriptMemory::content() const {
  struct stat s {};
  if (::fstat(file_, &s) != 0) refuse("cannot read its size");
  std::string all(static_cast<std::size_t>(s.st_size), '\0');
  std::size_t done = 0;
  while (done < all.size()) {
    const ssize_t n =
        ::pread(file_, all.data() + done, all.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) refuse("cannot read it");
    done += static_cast<std::size_t>(n);
  }
  return all;
}

void Transcript::on_begin(const transcript::Begin& run, std::function<std::uint64_t()> charged) {
  charged_ = std::move(charged);
  pending_.clear();
  write(run);
}

void Transcript::on_record(const transcript::Record& record) { write(record); }

void Transcript::before_noise(const ReleasedValue& what, std::span<const std::int64_t> sums) {
  pending_[{what.purpose, what.step}] = {charged_(), {sums.begin(), sums.end()}, {}};
}

void Transcript::before_noise(const ReleasedValue& what, std::span<const double> numbers) {
  pending_[{what.purpose, what.step}] = {charged_(), {}, {numbers.begin(), numbers.end()}};
}

void Transcript::on_release(const ReleasedValue& what, std::span<std::byte> values) {
  if (!charged_) return;
  transcript::Release release{.name = std::string(what.name),
                              .stream = static_cast<std::uint32_t>(what.purpose),
                              .step = what.step,
                              .grid = what.grid,
                              .noise_std = what.noise_std,
                              .sensitivity = what.sensitivity,
                              .charged = 0,
                              .sums = {},
                              .scores = {},
                              .values = numbers(what.kind, values)};
  auto pending = pending_.extract({what.purpose, what.step});
  if (pending.empty()) {
    release.charged = charged_();
  } else {
    release.charged = pending.mapped().charged;
    release.sums = std::move(pending.mapped().sums);
    release.scores = std::move(pending.mapped().scores);
  }
  write(release);
}

/// Writes a record, if possible in one system call. If the process is killed, the transcript then
/// ends with a complete record, or with the beginning of one.
void Transcript::write(const transcript::Record& record) const {
  const std::string bytes = transcript::encode(record);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(file_, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse("cannot write to it");
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace cudp
