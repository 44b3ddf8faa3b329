#include "runtime/data/cifar.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cudp;
  return refuse_or_pass([&] {
    const auto reader = memory_bytes("fuzz", {data, size});
    const CifarRecords records = read_cifar(*reader);
    must_hold(reader->position() == records.labels.size() * (1 + kCifarPixels));
    must_hold(records.pixels.size() == records.labels.size() * kCifarPixels);
    for (const std::uint8_t label : records.labels) must_hold(label < kCifarClasses);
  });
}
