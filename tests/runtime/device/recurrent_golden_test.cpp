// torch.nn.LSTM and torch.nn.GRU (tests/golden/make_recurrent.py) against the oracle, the CPU and
// CUDA's kernels.
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/engine_cases.hpp"
#include "tests/support/reference/network.hpp"
#include "tests/support/test_device.hpp"
#include "tests/support/test_files.hpp"

namespace cudp {
namespace {

/// The i-th weight.
double number(std::size_t i) {
  const auto x = static_cast<double>(i);
  return 0.4 * std::sin(1.7 * x + 0.3 * static_cast<double>(i % 11));
}

Network network_of(const nlohmann::json& golden, const nlohmann::json& c) {
  std::string layers = "{type='embedding',name='e',trainable=true,columns=" +
                       std::to_string(golden["columns"].get<int>()) + "},";
  for (std::size_t i = 0; i < c["hidden"].size(); ++i)
    layers += "{type='" + c["kind"].get<std::string>() + "',name='r" + std::to_string(i) +
              "',hidden=" + std::to_string(c["hidden"][i].get<int>()) +
              ",bidirectional=" + (c["bidirectional"].get<bool>() ? "true" : "false") +
              (i + 1 < c["hidden"].size() ? ",output='sequence'" : "") + "},";
  const std::string model =
      "name='golden'\nlayers=[" + layers + "{type='dense',name='d',out='outputs'}]";
  const int classes = golden["classes"].get<int>();
  return build_network(parse_model(model, "golden", classes), {1, 1, golden["longest"].get<int>()},
                       classes, {.words = golden["words"].get<int>(), .columns = 0});
}

Dataset texts_of(const nlohmann::json& golden, const nlohmann::json& c) {
  Dataset d;
  const auto longest = golden["longest"].get<std::size_t>();
  d.shape = {1, 1, static_cast<int>(longest)};
  d.classes = golden["classes"].get<int>();
  d.words = golden["words"].get<int>();
  for (const auto& text : c["texts"]) {
    d.lengths.push_back(static_cast<std::uint16_t>(text["words"].size()));
    for (std::size_t t = 0; t < longest; ++t)
      d.tokens.push_back(t < text["words"].size() ? text["words"][t].get<std::uint16_t>() : 0);
    d.labels.push_back(text["label"].get<std::uint8_t>());
  }
  return d;
}

TEST(RecurrentGolden, GradientsAndLossesArePyTorchs) {
  std::ifstream file(golden_file("recurrent.json"));
  const nlohmann::json golden = nlohmann::json::parse(file);
  ASSERT_EQ(golden["cases"].size(), 8u);
  for (const auto& c : golden["cases"]) {
    SCOPED_TRACE(c["kind"].get<std::string>() + c["hidden"].dump() + c["bidirectional"].dump());
    const Network net = network_of(golden, c);
    ASSERT_EQ(net.parameter_count, c["parameters"].get<std::size_t>());
    const Dataset data = texts_of(golden, c);
    TrainState state;
    reference::Values theta(net.parameter_count);
    for (std::size_t j = 0; j < theta.size(); ++j) {
      theta[j] = number(j);
      state.parameters.push_back(static_cast<float>(theta[j]));
    }
    const auto cpu = make_cpu_engine(net, {});
    const auto device = device_engine(net, {});
    for (Engine* engine : {cpu.get(), device.get()}) {
      engine->load(data);
      engine->set_state(state);
    }
    for (std::uint32_t i = 0; i < data.size(); ++i) {
      const auto& text = c["texts"][i];
      const auto want = text["gradient"].get<std::vector<double>>();
      const double loss = text["loss"].get<double>();
      const auto oracle =
          reference::gradient(net, theta, reference::features(data, i), data.labels[i]);
      EXPECT_TRUE(std::abs(oracle.loss - loss) <= 1e-12) << oracle.loss << " for " << loss;
      const auto exact = cases::distance(oracle.gradient.data(), want.data(), want.size());
      EXPECT_TRUE(exact.error <= 5e-7 * exact.size)  // the file has 7 digits
          << exact.error << " of " << exact.size;
      for (Engine* engine : {cpu.get(), device.get()}) {
        SCOPED_TRACE(engine == cpu.get() ? "CPU" : "CUDA");
        const PerExample got = engine->per_example({&i, 1}, true);
        EXPECT_TRUE(std::abs(got.losses[0] - loss) <= 1e-5 * (1 + loss));
        const auto near = cases::distance(got.gradients.data(), want.data(), want.size());
        EXPECT_TRUE(near.error <= 1e-5 * near.size) << near.error << " of " << near.size;
      }
    }
  }
}

}  // namespace
}  // namespace cudp
