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

Network text_model(const std::string& toml, int classes = 2, TextShape text = {50, 10}) {
  return build_network(parse_model(toml, "my.toml", classes), {1, 1, 8}, classes, text);
}

TEST(Models, ParameterCountsOfModelsForTexts) {
  const auto count = [](const char* name, TextShape text) {
    return text_model(std::string(builtin_model(name)), 2, text).parameter_count;
  };
  EXPECT_EQ(count("imdb-rnn", {20'000, 100}), 20'946u);
  EXPECT_EQ(count("imdb-lstm", {10'004, 0}), 1'081'002u);
  EXPECT_EQ(count("imdb-lstm", {20'000, 100}), 1'081'002u);
  EXPECT_EQ(count("imdb-mean", {20'000, 100}), 101u);
}

TEST(Models, RecurrentTensorsHavePyTorchsNamesAndShapes) {
  const auto names = [](const char* cell) {
    const Network net = text_model(
        std::string("name='m'\nlayers=[{type='embedding',name='e'},{type='") + cell +
        "',name='r',hidden=3,bidirectional=true},{type='dense',name='d',out='outputs'}]");
    std::string all;
    for (const auto& list : {net.parameters, net.zeros}) {
      for (const ParameterTensor& t : list) {
        all += t.name + " ";
        for (const int n : t.shape) all += std::to_string(n) + " ";
      }
      all += "| ";
    }
    return all;
  };
  EXPECT_EQ(names("lstm"),
            "r.weight_ih_l0 12 10 r.weight_hh_l0 12 3 r.bias_ih_l0 12 "
            "r.weight_ih_l0_reverse 12 10 r.weight_hh_l0_reverse 12 3 r.bias_ih_l0_reverse 12 "
            "d.weight 1 6 d.bias 1 | r.bias_hh_l0 12 r.bias_hh_l0_reverse 12 | ");
  EXPECT_EQ(names("gru"),
            "r.weight_ih_l0 9 10 r.weight_hh_l0 9 3 r.bias_ih_l0 9 r.bias_hh_l0 9 "
            "r.weight_ih_l0_reverse 9 10 r.weight_hh_l0_reverse 9 3 r.bias_ih_l0_reverse 9 "
            "r.bias_hh_l0_reverse 9 d.weight 1 6 d.bias 1 | | ");
}

TEST(Models, SequencesGoToTheirLayersOnly) {
  const auto refused = [](const std::string& layers, TextShape text = {50, 10}) -> std::string {
    try {
      text_model("name='m'\nlayers=[" + layers + "{type='dense',name='d',out='outputs'}]", 2, text);
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return "";
  };
  const std::string words = "{type='embedding',name='e'},";
  EXPECT_EQ(refused(words + "{type='mean'},"), "");
  EXPECT_NE(refused(words).find("m, layer 2: expected lstm, gru, mean"), std::string::npos);
  EXPECT_NE(refused(words + "{type='maxpool'},").find("expected lstm, gru, mean"),
            std::string::npos);
  EXPECT_NE(refused(words + "{type='mean'},{type='mean'},").find("layer 3: expected a sequence"),
            std::string::npos);
  EXPECT_NE(refused(words + "{type='mean'}," + words).find("as the first layer only"),
            std::string::npos);
  EXPECT_NE(refused("{type='mean'},").find("expected an embedding as the first layer"),
            std::string::npos);
  EXPECT_NE(refused(words + "{type='mean'},", {50, 0}).find("the data has no word vectors"),
            std::string::npos);
  EXPECT_NE(refused(words + "{type='mean'},", {0, 0}).find("expected texts for an embedding"),
            std::string::npos);
  EXPECT_NE(refused("{type='embedding',name='e',columns=4},").find("need trainable = true"),
            std::string::npos);
  EXPECT_NE(refused("{type='embedding',name='e',trainable=true,trainable_rows=9,columns=4},"
                    "{type='mean'},")
                .find("expected the 10 columns"),
            std::string::npos);
  EXPECT_NE(refused(words + "{type='lstm',name='r',hidden=3,output='all'},")
                .find("expected output last, mean or sequence, found 'all'"),
            std::string::npos);
}

TEST(Models, OneTextTouchesFewRowsOfATable) {
  const Network net =
      text_model(std::string(builtin_model("imdb-lstm")), 2, {.words = 10'004, .columns = 0});
  EXPECT_EQ(net.parameters[0].touched, 800u);  // 8 words
  EXPECT_EQ(net.parameters[1].touched, net.parameters[1].size);
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
                .find("my.toml, line 3: expected one of: type, name, out, per_token, lr_scale; "
                      "found key 'kernl'"),
            std::string::npos);
  EXPECT_NE(refusal("name='m'\nlayers=[{type='conv2d',name='c',out=4,kernel=40}]")
                .find("m, layer 1: expected an input of at least 40 pixels"),
            std::string::npos);
  EXPECT_NE(refusal("name='m'\nlayers=[{type='dense',name='a',out=7}]").find("10 outputs"),
            std::string::npos);
  EXPECT_NE(refusal("name='m'\nlayers=[{type='dense',name='a',out=7},{type='dense',name='a',"
                    "out='outputs'}]")
                .find("that no other layer has"),
            std::string::npos);
  EXPECT_NE(refusal("name = 'm'\nlayers = [").find("my.toml, line 2"), std::string::npos);
}

}  // namespace
}  // namespace cudp
