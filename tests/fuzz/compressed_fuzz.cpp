#include <vector>

#include "runtime/data/bytes.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cudp;
  return refuse_or_pass([&] {
    constexpr std::uint64_t kMost = 4 << 20;  // a small file can unpack to gigabytes
    const auto reader = memory_bytes("fuzz", {data, size});
    std::vector<std::uint8_t> bytes;
    const std::uint64_t n = append_bytes(*reader, kMost, bytes);
    must_hold(n == bytes.size() && n == reader->position());
    if (n < kMost) expect_end(*reader, "everything");
  });
}
