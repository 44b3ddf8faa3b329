#include "runtime/data/schema.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cudp;
  return refuse_or_pass([&] {
    const TableSchema schema = parse_schema({reinterpret_cast<const char*>(data), size}, "fuzz");
    const int features = feature_count(schema);
    must_hold(features >= 0 && features <= kMaxFeatures);
    must_hold(features > 0 || is_text(schema) || !first_incomplete(schema).empty());
  });
}
