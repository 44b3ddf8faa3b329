#include <algorithm>
#include <vector>

#include "runtime/data/array_layout.hpp"
#include "runtime/data/npy.hpp"
#include "runtime/data/zip.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace cudp {
namespace {

constexpr std::uint64_t kMaxNumbers = 1 << 16;

/// Forms that a user may state; `choice` picks one.
ArrayForm form_of(std::uint8_t choice) {
  ArrayForm form{.channels_last = choice % 2 == 1};
  if (choice % 3 == 1) form.shape = Shape{3, 1, 2};
  if (choice % 3 == 2) form.shape_of_rows = Shape{1, 2, 1};
  return form;
}

/// Finds an array's layout, and changes the order of an example's numbers if it asks for that: each
/// number must still be there once.
void lay_out(const NpyReader& array, const ArrayForm& form) {
  const ArrayLayout layout = array_layout(array.name(), array.type(), array.shape(), form);
  std::uint64_t numbers = 1;
  for (const std::uint64_t side : layout.sides) numbers *= side;
  must_hold(numbers == static_cast<std::uint64_t>(layout.shape.size()));
  must_hold(layout.shape.channels > 0 && layout.shape.height > 0 && layout.shape.width > 0);
  must_hold(!layout.place_of(numbers - 1).empty());
  if (!layout.channels_last || numbers > kMaxNumbers) return;
  std::vector<float> example(numbers), scratch;
  for (std::size_t i = 0; i < numbers; ++i) example[i] = static_cast<float>(i);
  channels_first(std::span<float>(example), layout.shape, scratch);
  std::sort(example.begin(), example.end());
  for (std::size_t i = 0; i < numbers; ++i) must_hold(example[i] == static_cast<float>(i));
}

/// Reads an array as far as it is read in earnest, up to a bound, in a way that `choice` picks.
void read_array(std::unique_ptr<ByteReader> bytes, std::uint8_t choice) {
  NpyReader array(std::move(bytes));
  refuse_or_pass([&] { lay_out(array, form_of(choice)); });
  must_hold(!array.shape().empty());
  std::uint64_t numbers = 1;
  for (const std::uint64_t side : array.shape()) numbers *= side;
  must_hold(numbers <= std::uint64_t{1} << 60);
  const std::uint64_t wanted = std::min(numbers, kMaxNumbers);
  if (choice % 5 == 4) {
    std::vector<double> values(wanted);
    array.read(std::span<double>(values));
  } else if (array.is_bytes() && choice % 5 == 3) {
    std::vector<std::uint8_t> values(wanted);
    array.read(std::span<std::uint8_t>(values));
  } else if (array.is_floating()) {
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

/// The first byte says whether the others are an array or an archive of such, and how it is read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cudp;
  if (size == 0) return 0;
  const std::span<const std::uint8_t> bytes(data + 1, size - 1);
  return refuse_or_pass([&] {
    if (data[0] % 2 == 0) return read_array(memory_bytes("fuzz", bytes), data[0] / 2);
    const auto file = memory_random_access("fuzz", bytes);
    const ZipArchive archive(*file);
    const std::vector<std::string> names = archive.names();
    for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 8); ++i)
      refuse_or_pass([&] { read_array(archive.open(names[i]), data[0] / 2); });
  });
}
