#include "runtime/data/schema_text.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cudp;
  return refuse_or_pass([&] {
    const TableSchema schema = parse_schema({reinterpret_cast<const char*>(data), size}, "fuzz");
    const int features = feature_count(schema);
    must_hold(features >= 0 && features <= kMaxFeatures);
    const bool complete = first_incomplete(schema).empty();
    must_hold(features > 0 || is_text(schema) || !complete);
    must_hold(parse_schema(schema_toml(schema), "written") == schema);
    if (complete) must_hold(feature_names(schema).size() == static_cast<std::size_t>(features));
  });
}
