#include <stdexcept>

#include "models/model.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cudp;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const int classes : {2, 10}) {
    try {
      const Network network =
          build_network(parse_model(text, "fuzz", classes), {1, 28, 28}, classes);
      std::size_t parameters = 0;
      for (const ParameterTensor& p : network.parameters) parameters += p.size;
      must_hold(parameters == network.parameter_count);
      for (const NetworkLayer& layer : network.layers)
        must_hold(layer.out.channels > 0 && layer.out.height > 0 && layer.out.width > 0);
    } catch (const std::invalid_argument&) {
    }
  }
  return 0;
}
