#include "runtime/data/idx.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cudp;
  refuse_or_pass([&] {
    const auto reader = memory_bytes("fuzz", {data, size});
    const IdxImages images = read_idx_images(*reader);
    must_hold(reader->position() == 16 + images.pixels.size());
    must_hold(images.rows > 0 && images.columns > 0);
    must_hold(images.pixels.size() ==
              images.count() * static_cast<std::uint64_t>(images.rows) * images.columns);
  });
  return refuse_or_pass([&] {
    const auto reader = memory_bytes("fuzz", {data, size});
    const IdxLabels labels = read_idx_labels(*reader);
    must_hold(labels.labels.size() == labels.whole && reader->position() == 8 + labels.whole);
  });
}
