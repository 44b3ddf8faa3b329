#include "runtime/run/authenticator.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include <sodium.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include "runtime/base/files.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/data/row_pass.hpp"

namespace cudp {
namespace {

constexpr std::size_t kBlock = 256;      // examples per block
constexpr std::size_t kBlockBytes = 16;  // size of a block's authentication code
/// Separator between a file's content and its authentication code.
constexpr std::string_view kTrailer = "\ntag ";
/// Number of hexadecimal digits of an authentication code.
constexpr std::size_t kDigits = 64;

const unsigned char* bytes_of(const void* p) { return static_cast<const unsigned char*>(p); }
const unsigned char* key_bytes(const SecretKey& key) { return bytes_of(key.key().words); }

/// Keyed BLAKE2b hash of data that are added in pieces.
class Hash {
 public:
  Hash(const SecretKey& key, std::size_t size) : size_(size) {
    ::crypto_generichash_init(&state_, key_bytes(key), sizeof(RandomKey), size);
  }
  ~Hash() { ::sodium_memzero(&state_, sizeof state_); }
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;

  void add(const void* bytes, std::size_t size) {
    ::crypto_generichash_update(&state_, bytes_of(bytes), size);
  }
  void add_number(std::uint64_t n) { add(&n, sizeof n); }
  void finish(void* out) {
    ::crypto_generichash_final(&state_, static_cast<unsigned char*>(out), size_);
  }

 private:
  crypto_generichash_state state_;
  std::size_t size_;
};

/// Poly1305 hash of data that are added in pieces; several times as fast as Hash. Two given
/// messages have the same value with a probability of at most 8 ceil(bytes / 16) / 2^106 (Bernstein
/// 2005): 2^-76 for 2 GiB. The value must stay secret, because one key serves for several messages.
class FastHash {
 public:
  /// Size of the value, and of the key [bytes].
  static constexpr std::size_t kSize = crypto_onetimeauth_BYTES;
  static constexpr std::size_t kKeySize = crypto_onetimeauth_KEYBYTES;

  explicit FastHash(const SecretKey& key) {
    static_assert(sizeof(RandomKey) == kKeySize);
    ::crypto_onetimeauth_init(&state_, key_bytes(key));
  }
  ~FastHash() { ::sodium_memzero(&state_, sizeof state_); }
  FastHash(const FastHash&) = delete;
  FastHash& operator=(const FastHash&) = delete;

  void add(const void* bytes, std::size_t size) {
    ::crypto_onetimeauth_update(&state_, bytes_of(bytes), size);
  }
  /// Adds the value to another hash, whose own value may be stored.
  void finish(Hash& into) {
    std::array<unsigned char, kSize> value{};
    ::crypto_onetimeauth_final(&state_, value.data());
    into.add(value.data(), value.size());
    ::sodium_memzero(value.data(), value.size());
  }

 private:
  crypto_onetimeauth_state state_;
};

/// Derives the key for authentication codes from the run's random key, by a hash. A key should have
/// one purpose only, and the random key itself is used only to draw random numbers.
RandomKey derived(const RandomKey& key) {
  constexpr std::string_view kPurpose = "cudp seal 1";
  RandomKey out{};
  ::crypto_generichash(reinterpret_cast<unsigned char*>(out.words), sizeof out.words,
                       bytes_of(kPurpose.data()), kPurpose.size(), bytes_of(key.words),
                       sizeof key.words);
  return out;
}

/// Derives the key of the fast hash of rows from the key for authentication codes.
RandomKey rows_key_of(const SecretKey& key) {
  constexpr std::string_view kPurpose = "fast hash of rows";
  RandomKey out{};
  Hash hash(key, sizeof out.words);
  hash.add_number(kPurpose.size());
  hash.add(kPurpose.data(), kPurpose.size());
  hash.finish(out.words);
  return out;
}

/// Adds the elements of examples [begin, begin + count) of an array to the hash; `width` elements
/// per example. Adds nothing if the array is empty.
template <class Array>
void add_part(FastHash& hash, const Array& array, std::size_t width, std::size_t begin,
              std::size_t count) {
  if (!array.empty()) hash.add(array.data() + begin * width, count * width * sizeof(*array.data()));
}

/// Returns the authentication code of the embedding of words; "" if there is none.
std::string vectors_tag(const Authenticator& authenticator, const Dataset& train) {
  if (train.vectors == nullptr) return "";
  const std::vector<float>& values = train.vectors->values;
  return authenticator.tag(
      "vectors", {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
}

/// Returns a text that describes the memory layout of a table's coded rows; "" for other data.
std::string layout_text(const Dataset& train) {
  if (!train.is_coded()) return "";
  const RowLayout& layout = *train.layout;
  return fmt::format("coded {} {} {}\n", layout.features, layout.codes,
                     fmt::join(layout.number_feature, ","));
}

}  // namespace

Authenticator::Authenticator(const RandomKey& key)
    : key_(derived(key)), rows_key_(rows_key_of(key_)) {}

std::string Authenticator::tag(std::string_view purpose, std::string_view bytes) const {
  std::array<unsigned char, kDigits / 2> code{};
  Hash hash(key_, code.size());
  hash.add_number(purpose.size());
  hash.add(purpose.data(), purpose.size());
  hash.add(bytes.data(), bytes.size());
  hash.finish(code.data());
  std::string digits;
  for (const unsigned char c : code) digits += fmt::format("{:02x}", c);
  return digits;
}

bool Authenticator::matches(std::string_view purpose, std::string_view bytes,
                            std::string_view tag) const {
  const std::string expected = this->tag(purpose, bytes);
  return tag.size() == expected.size() &&
         ::sodium_memcmp(tag.data(), expected.data(), expected.size()) == 0;
}

std::string Authenticator::block_tags(const Dataset& train, int threads,
                                      const ReadAllRows& read) const {
  const ExampleWidths widths = widths_of(train);
  const std::size_t blocks = (train.size() + kBlock - 1) / kBlock;
  std::string tags(blocks * kBlockBytes, '\0');
  const auto size_of = [&](std::size_t b) { return std::min(kBlock, train.size() - b * kBlock); };
  // features: those of the block's examples, if they are in a file.
  const auto add_block = [&](std::size_t b, std::span<const std::uint8_t> features) {
    const std::size_t begin = b * kBlock;
    const std::size_t count = size_of(b);
    Hash hash(key_, kBlockBytes);
    hash.add_number(train.first / kBlock + b);
    hash.add_number(count);
    hash.add_number(train.is_bytes() ? 1 : 0);
    FastHash rows(rows_key_);
    rows.add(features.data(), features.size());
    add_part(rows, train.byte_values(), widths.numbers, begin, count);
    add_part(rows, train.float_values(), widths.numbers, begin, count);
    add_part(rows, train.coded, widths.coded, begin, count);
    add_part(rows, train.tokens, widths.numbers, begin, count);
    add_part(rows, train.lengths, 1, begin, count);
    add_part(rows, train.labels, 1, begin, count);
    add_part(rows, train.targets, 1, begin, count);
    add_part(rows, train.numbers, 1, begin, count);
    add_part(rows, train.first_rows, 1, begin, count);
    rows.finish(hash);
    hash.finish(tags.data() + b * kBlockBytes);
  };
  const std::size_t row_bytes = train.rows != nullptr ? train.rows->row_bytes() : 0;
  const auto add_rows = [&](std::size_t first, std::span<const std::uint8_t> rows) {
    for (std::size_t b = first / kBlock; !rows.empty(); ++b) {
      const std::size_t bytes = size_of(b) * row_bytes;
      add_block(b, rows.first(bytes));
      rows = rows.subspan(bytes);
    }
  };
  if (read && row_bytes > 0 && train.rows->rows() == train.size() &&
      read({.use = add_rows, .multiple = kBlock}))
    return tags;
  ThreadTeam team(threads);
  team.run(blocks, [&](std::size_t b, int) {
    std::vector<std::uint8_t> features(size_of(b) * row_bytes);
    if (!features.empty()) train.rows->copy(b * kBlock, size_of(b), features.data());
    add_block(b, features);
  });
  return tags;
}

std::string data_tag(const Authenticator& authenticator, const Dataset& train,
                     const std::string& block_tags, std::string_view part) {
  std::uint32_t scale = 0;
  std::uint32_t shift = 0;
  std::memcpy(&scale, &train.scale, sizeof scale);
  std::memcpy(&shift, &train.shift, sizeof shift);
  std::string about =
      fmt::format("{}x{}x{} {} {} {:x} {:x}\n", train.shape.channels, train.shape.height,
                  train.shape.width, train.classes, train.whole_size(), scale, shift);
  const auto count = [&](const auto& array) { return array.empty() ? 0 : train.whole_size(); };
  about += fmt::format("{} {}\n", count(train.numbers), count(train.first_rows));
  about += layout_text(train);
  if (train.is_text())
    about += fmt::format("{} {}\n", train.words, vectors_tag(authenticator, train));
  return authenticator.tag(part, about + block_tags);
}

void write_authenticated(const std::filesystem::path& path, std::string_view purpose,
                         std::string_view content, const Authenticator& authenticator, Sync sync) {
  std::string file(content);
  file.append(kTrailer).append(authenticator.tag(purpose, content)).append("\n");
  write_file(path, file, 0600, sync);
}

AuthenticatedFile read_authenticated(const std::filesystem::path& path) {
  AuthenticatedFile file{read_file(path), ""};
  const std::size_t trailer = kTrailer.size() + kDigits + 1;
  if (file.content.size() < trailer) return file;
  const std::size_t at = file.content.size() - trailer;
  if (file.content.compare(at, kTrailer.size(), kTrailer) != 0 || file.content.back() != '\n')
    return file;
  file.tag = file.content.substr(at + kTrailer.size(), kDigits);
  file.content.resize(at);
  return file;
}

}  // namespace cudp
