// Freezing layers of a network, and its whole parameters again.
#include "models/freeze.hpp"

#include <numeric>
#include <stdexcept>

#include <gtest/gtest.h>

namespace cudp {
namespace {

Network three_layers() {
  return build_network(parse_model(R"(name = "three"
activation = "tanh"
layers = [
  { type = "conv2d", name = "conv", out = 2, kernel = 2 },
  { type = "groupnorm", name = "norm", groups = 1 },
  { type = "activation" },
  { type = "dense", name = "fc", out = "outputs" },
])",
                                   "model", 3),
                       {1, 4, 4}, 3);
}

TEST(Freeze, MovesTensorsOutOfTheParametersAndBack) {
  const Network whole = three_layers();
  std::vector<float> values(whole.parameter_count);
  std::iota(values.begin(), values.end(), 1.0f);
  const Network n = freeze(whole, {true, false, false, false}, values);
  EXPECT_EQ(n.groups, 2);
  EXPECT_EQ(n.parameter_count, whole.parameter_count - 10);
  EXPECT_EQ(count_of_all_parameters(n), whole.parameter_count);
  ASSERT_EQ(n.frozen.size(), 2u);
  EXPECT_EQ(n.frozen[0].name, "conv.weight");
  EXPECT_EQ(n.frozen[0].offset, n.parameter_count);
  EXPECT_EQ(n.parameters[0].name, "norm.weight");
  EXPECT_EQ(n.parameters[0].offset, 0u);
  EXPECT_EQ(n.parameters[0].group, 0);
  EXPECT_FALSE(n.layers[0].has_parameters());
  EXPECT_EQ(n.tensor(n.layers[3], 1).name, "fc.bias");
  const std::vector<float> trained(values.begin() + 10, values.end());
  EXPECT_EQ(whole_parameters(n, trained), values);
  const Network again = unfrozen(n);
  EXPECT_EQ(again.parameter_count, whole.parameter_count);
  EXPECT_TRUE(again.frozen.empty());
}

TEST(Freeze, KeepsTheOrderOfTensorsAroundAFrozenOne) {
  const Network whole = three_layers();
  std::vector<float> values(whole.parameter_count);
  std::iota(values.begin(), values.end(), 1.0f);
  const Network n = freeze(whole, {false, true, false, false}, values);
  std::vector<float> trained = values;
  trained.erase(trained.begin() + 10, trained.begin() + 14);
  EXPECT_EQ(whole_parameters(n, trained), values);
  EXPECT_THROW(static_cast<void>(whole_parameters(n, values)), std::invalid_argument);
}

TEST(Freeze, RefusesWhatLeavesNothingToTrain) {
  const Network whole = three_layers();
  const std::vector<float> values(whole.parameter_count);
  EXPECT_THROW(static_cast<void>(freeze(whole, {true, true, false, true}, values)),
               std::invalid_argument);
  EXPECT_THROW(static_cast<void>(freeze(whole, {true}, values)), std::invalid_argument);
}

TEST(LrScale, IsOfLayersWithParametersAndPositive) {
  const auto refusal = [](const std::string& layer) -> std::string {
    try {
      const ModelSpec spec = parse_model("name = \"m\"\nlayers = [\n" + layer +
                                             "\n  { type = \"dense\", name = \"fc\", out = 2 },\n]",
                                         "m.toml", 2);
      return lr_scale_of(spec.layers[0]) == 0.5f ? "accepted" : "lost";
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
  };
  EXPECT_EQ(refusal(R"(  { type = "dense", name = "a", out = 3, lr_scale = 0.5 },)"), "accepted");
  EXPECT_EQ(refusal(R"(  { type = "conv2d", name = "a", out = 3, kernel = 1, lr_scale = 0.5 },)"),
            "accepted");
  EXPECT_EQ(refusal(R"(  { type = "groupnorm", name = "a", groups = 1, lr_scale = 0.5 },)"),
            "accepted");
  EXPECT_EQ(refusal(R"(  { type = "gru", name = "a", hidden = 3, lr_scale = 0.5 },)"), "accepted");
  EXPECT_EQ(
      refusal(
          R"(  { type = "embedding", name = "a", trainable = true, columns = 3, lr_scale = 0.5 },)"),
      "accepted");
  EXPECT_EQ(refusal(R"(  { type = "dense", name = "a", out = 3, lr_scale = 0.0 },)"),
            "m.toml, line 3: expected lr_scale > 0, found 0: a layer that is not trained is named "
            "by --freeze");
  EXPECT_NE(
      refusal(R"(  { type = "dense", name = "a", out = 3, lr_scale = -1 },)").find("positive"),
      std::string::npos);
  EXPECT_NE(refusal(R"(  { type = "relu", lr_scale = 0.5 },)").find("found key 'lr_scale'"),
            std::string::npos);
  EXPECT_NE(refusal(R"(  { type = "embedding", name = "a", lr_scale = 0.5 },)")
                .find("need trainable = true"),
            std::string::npos);
}

}  // namespace
}  // namespace cudp
