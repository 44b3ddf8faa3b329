#include <algorithm>
#include <vector>

#include "runtime/data/npy.hpp"
#include "runtime/data/zip.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace cudp {
namespace {

constexpr std::uint64_t kMaxNumbers = 1 << 16;

/// Reads an array as far as it is read in earnest, up to a bound.
void read_array(std::unique_ptr<ByteReader> bytes) {
  NpyReader array(std::move(bytes));
  must_hold(!array.shape().empty());
  std::uint64_t numbers = 1;
  for (const std::uint64_t side : array.shape()) numbers *= side;
  must_hold(numbers <= std::uint64_t{1} << 60);
  const std::uint64_t wanted = std::min(numbers, kMaxNumbers);
  if (array.is_floating()) {
    std::vector<float> values(wanted);
    array.read(std::span<float>(values));
  } else {
    std::vector<std::int64_t> values(wanted);
    array.read(std::span<std::int64_t>(values));
    for (const std::int64_t x : values) must_hold(array.type()[1] == 'i' || x >= -1);
  }
  if (wanted == numbers) array.expect_end();
}

}  // namespace
}  // namespace cudp

/// The first byte says whether the others are an array or an archive of such.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cudp;
  if (size == 0) return 0;
  const std::span<const std::uint8_t> bytes(data + 1, size - 1);
  return refuse_or_pass([&] {
    if (data[0] % 2 == 0) return read_array(memory_bytes("fuzz", bytes));
    const auto file = memory_random_access("fuzz", bytes);
    const ZipArchive archive(*file);
    const std::vector<std::string> names = archive.names();
    for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 8); ++i)
      refuse_or_pass([&] { read_array(archive.open(names[i])); });
  });
}
