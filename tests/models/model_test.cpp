#include "models/model.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

namespace cudp {
namespace {

Network builtin(const char* name, Shape input, int classes) {
  return build_network(parse_model(builtin_model(name), name, classes), input, classes);
}

std::string refusal(const std::string& toml, Shape input = {1, 28, 28}, int classes = 10) {
  try {
    build_network(parse_model(toml, "my.toml", classes), input, classes);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

TEST(Models, ParameterCountsOfThePapers) {
  EXPECT_EQ(builtin("cnn", {1, 28, 28}, 10).parameter_count, 26'010u);
  EXPECT_EQ(builtin("cifar-cnn", {3, 32, 32}, 10).parameter_count, 550'570u);
  EXPECT_EQ(builtin("mlp", {60, 1, 1}, 10).parameter_count, 71'010u);
  EXPECT_EQ(builtin("scatter-cnn", {81, 7, 7}, 10).parameter_count, 33'066u);
  EXPECT_EQ(builtin("scatter-cifar-cnn", {243, 8, 8}, 10).parameter_count, 187'210u);
  EXPECT_EQ(builtin("scatter-linear", {81, 7, 7}, 10).parameter_count, 39'700u);
  EXPECT_EQ(builtin("scatter-linear", {243, 8, 8}, 10).parameter_count, 155'530u);
  EXPECT_EQ(builtin("logistic", {124, 1, 1}, 2).parameter_count, 125u);
  EXPECT_EQ(builtin("svm", {32, 1, 1}, 2).parameter_count, 33u);
}

TEST(Models, ShapesAndNames) {
  const Network net = builtin("cnn", {1, 28, 28}, 10);
  EXPECT_EQ(net.layers[0].out, (Shape{16, 14, 14}));
  EXPECT_EQ(net.layers[2].out, (Shape{16, 13, 13}));
  EXPECT_EQ(net.layers[3].out, (Shape{32, 5, 5}));
  EXPECT_EQ(net.layers[5].out, (Shape{32, 4, 4}));
  ASSERT_EQ(net.parameters.size(), 8u);
  EXPECT_EQ(net.parameters[0].name, "conv1.weight");
  EXPECT_EQ(net.parameters[0].shape, (std::vector<int>{16, 1, 8, 8}));
  EXPECT_EQ(net.parameters[4].shape, (std::vector<int>{32, 512}));
  EXPECT_EQ(net.groups, 4);
}

TEST(Models, TensorsOfALayerAreInOneGroup) {
  const Network net = builtin("cnn", {1, 28, 28}, 10);
  std::size_t next = 0;
  std::size_t offset = 0;
  int group = 0;
  for (const NetworkLayer& l : net.layers) {
    if (!l.has_parameters()) {
      EXPECT_EQ(l.group, -1);
      continue;
    }
    EXPECT_EQ(l.first_parameter, next);
    EXPECT_EQ(l.group, group++);
    for (std::size_t i = 0; i < l.parameter_count; ++i) {
      const ParameterTensor& t = net.parameters[next + i];
      EXPECT_EQ(t.group, l.group);
      EXPECT_EQ(t.offset, offset);
      offset += t.size;
    }
    next += l.parameter_count;
  }
  EXPECT_EQ(next, net.parameters.size());
  EXPECT_EQ(offset, net.parameter_count);
  EXPECT_EQ(group, net.groups);
}

TEST(Models, TwoClassesTakeOneLogit) {
  EXPECT_EQ(builtin("logistic", {5, 1, 1}, 2).outputs, 1);
  EXPECT_EQ(builtin("logistic", {5, 1, 1}, 3).outputs, 3);
  EXPECT_THROW(builtin("svm", {5, 1, 1}, 3), std::invalid_argument);
}

TEST(Models, RefusalsNameThePlaceAndTheReason) {
  EXPECT_NE(refusal("name='m'\nlayers=[\n{type='batchnorm'}]").find("mixes the examples"),
            std::string::npos);
  EXPECT_NE(refusal("name='m'\nlayers=[\n{type='dense',name='a',out=10,kernl=3}]")
                .find("my.toml, line 3: expected one of: type, name, out, per_token; found key 'kernl'"),
            std::string::npos);
  EXPECT_NE(refusal("name='m'\nlayers=[{type='conv2d',name='c',out=4,kernel=40}]")
                .find("m, layer 1: expected an input of at least 40 pixels"),
            std::string::npos);
  EXPECT_NE(refusal("name='m'\nlayers=[{type='dense',name='a',out=7}]").find("10 outputs"),
            std::string::npos);
  EXPECT_NE(refusal("name='m'\nlayers=[{type='dense',name='a',out=7},{type='dense',name='a',"
                    "out='outputs'}]")
                .find("not yet used"),
            std::string::npos);
  EXPECT_NE(refusal("name = 'm'\nlayers = [").find("my.toml, line 2"), std::string::npos);
}

}  // namespace
}  // namespace cudp
