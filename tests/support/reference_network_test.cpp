#include <random>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/reference/engine.hpp"
#include "tests/support/reference/network.hpp"
#include "tests/support/reference/random.hpp"

// The oracle must itself be right: its gradients against central differences of its own loss, its
// generators against published vectors.

namespace cudp::reference {
namespace {

struct Case {
  const char* name;
  std::string toml;
  Shape input;
  int classes;
  TextShape text = {};
};

void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

Input features_of(const Network& net, std::mt19937& random) {
  std::normal_distribution<double> normal;
  Values x(net.input.size());
  for (double& v : x) v = normal(random);
  return x;
}

/// Of three examples the second is a full text and the others are shorter; few words, so that they
/// come again.
Input text_of(const Case& c, int example, std::mt19937& random) {
  static WordVectors vectors;
  vectors = {.rows = c.text.words, .columns = c.text.columns, .values = {}};
  std::mt19937 fixed(3);
  std::normal_distribution<float> normal;
  for (int i = 0; i < c.text.words * c.text.columns; ++i) vectors.values.push_back(normal(fixed));
  Input x(Values(c.input.width, 0.0));
  x.length = example == 1 ? c.input.width : 1 + example;
  x.vectors = c.text.columns > 0 ? &vectors : nullptr;
  for (int t = 0; t < x.length; ++t) x.values[t] = static_cast<double>(random() % c.text.words);
  return x;
}

class ReferenceGradient : public testing::TestWithParam<Case> {};

TEST_P(ReferenceGradient, AgreesWithCentralDifferences) {
  const Case& c = GetParam();
  const Network net =
      build_network(parse_model(c.toml, c.name, c.classes), c.input, c.classes, c.text);
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  Values theta(net.parameter_count);
  for (double& t : theta) t = 0.4 * normal(random);
  for (int example = 0; example < 3; ++example) {
    const Input x = c.text.words > 0 ? text_of(c, example, random) : features_of(net, random);
    const int label = example % c.classes;
    const ExampleGradient exact = gradient(net, theta, x, label);
    double worst = 0.0;
    double largest_gradient = 0.0;
    for (std::size_t j = 0; j < theta.size(); ++j) {
      const double h = 1e-6;
      Values moved = theta;
      moved[j] += h;
      const double up = loss(net.spec.loss, logits(net, moved, x), label, nullptr);
      moved[j] -= 2.0 * h;
      const double down = loss(net.spec.loss, logits(net, moved, x), label, nullptr);
      worst = std::fmax(worst, std::fabs((up - down) / (2.0 * h) - exact.gradient[j]));
      largest_gradient = std::fmax(largest_gradient, std::fabs(exact.gradient[j]));
    }
    EXPECT_TRUE(worst <= 1e-7) << worst;
    EXPECT_TRUE(largest_gradient > 1e-3 || net.spec.loss == Loss::hinge);
  }
}

std::string layers(const std::string& list, const std::string& rest = "") {
  return "name = 'case'\n" + rest + "layers = [" + list + "]";
}

const char* kLast = "{type='dense',name='last',out='outputs'}";

INSTANTIATE_TEST_SUITE_P(
    Layers, ReferenceGradient,
    testing::Values(
        Case{"dense",
             layers("{type='dense',name='a',out=5},{type='tanh'}," + std::string(kLast)),
             {7, 1, 1},
             3},
        Case{"conv",
             layers("{type='conv2d',name='c',out=3,kernel=3,stride=2,pad=1}," + std::string(kLast)),
             {2, 6, 5},
             3},
        Case{"maxpool",
             layers("{type='conv2d',name='c',out=2,kernel=2},{type='maxpool',kernel=2,"
                    "stride=1}," +
                    std::string(kLast)),
             {1, 5, 5},
             3},
        Case{"avgpool",
             layers("{type='conv2d',name='c',out=2,kernel=2},{type='avgpool',kernel=2,"
                    "stride=2}," +
                    std::string(kLast)),
             {1, 6, 6},
             3},
        Case{"groupnorm",
             layers("{type='conv2d',name='c',out=4,kernel=3},{type='groupnorm',"
                    "name='n',groups=2},{type='tanh'}," +
                    std::string(kLast)),
             {1, 6, 6},
             3},
        Case{"relu",
             layers("{type='dense',name='a',out=6},{type='relu'}," + std::string(kLast)),
             {5, 1, 1},
             3},
        Case{"tempered",
             layers("{type='dense',name='a',out=6},{type='tempered_sigmoid',scale=1.5,"
                    "temperature=3,offset=0.7}," +
                    std::string(kLast)),
             {5, 1, 1},
             3},
        Case{"token_dense",
             layers("{type='embedding',name='e'},{type='dense',name='a',out=4,per_token=true},"
                    "{type='tanh'},{type='mean'}," +
                    std::string(kLast)),
             {1, 1, 5},
             3,
             {4, 3}},
        Case{"embedding",
             layers("{type='embedding',name='e',trainable=true,trainable_rows=3},{type='tanh'},"
                    "{type='mean'}," +
                    std::string(kLast)),
             {1, 1, 6},
             3,
             {4, 3}},
        Case{"lstm",
             layers("{type='embedding',name='e',trainable=true,columns=3},"
                    "{type='lstm',name='a',hidden=4}," +
                    std::string(kLast)),
             {1, 1, 5},
             3,
             {4, 0}},
        Case{"lstms",
             layers("{type='embedding',name='e'},"
                    "{type='lstm',name='a',hidden=2,bidirectional=true,output='sequence'},"
                    "{type='lstm',name='b',hidden=3,bidirectional=true,output='mean'}," +
                    std::string(kLast)),
             {1, 1, 5},
             3,
             {4, 3}},
        Case{"gru",
             layers("{type='embedding',name='e',trainable=true,columns=3},"
                    "{type='gru',name='a',hidden=4}," +
                    std::string(kLast)),
             {1, 1, 5},
             3,
             {4, 0}},
        Case{"grus",
             layers("{type='embedding',name='e'},"
                    "{type='gru',name='a',hidden=2,bidirectional=true,output='sequence'},"
                    "{type='gru',name='b',hidden=3,bidirectional=true}," +
                    std::string(kLast)),
             {1, 1, 5},
             3,
             {4, 3}},
        Case{"logistic", layers(kLast), {6, 1, 1}, 2},
        Case{"hinge", layers(kLast, "loss='hinge'\n"), {6, 1, 1}, 2}),
    [](const auto& info) { return info.param.name; });

TEST(ReferenceRandom, ChaCha20BlockOfRfc8439) {
  RandomKey key{};
  for (std::uint32_t i = 0; i < 8; ++i)
    key.words[i] = 0x03020100u + 0x04040404u * i;  // bytes 00 01 02 ... 1f
  const auto block = chacha20_block(key, 1, {0x09000000, 0x4a000000, 0x00000000});
  EXPECT_EQ(block[0], 0xe4e7f110u);
  EXPECT_EQ(block[1], 0x15593bd1u);
  EXPECT_EQ(block[15], 0x4e3c50a2u);
}

TEST(ReferenceRandom, PhiloxKnownAnswers) {
  // Random123's kat_vectors, philox4x32 10.
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(ReferenceClip, FactorsBoundTheNorm) {
  const Values squares = {9.0, 16.0};
  for (const Clipping kind : {Clipping::flat, Clipping::per_layer, Clipping::automatic}) {
    const Values f = clip_factors({kind, 1.0f, 0.01f}, squares);
    EXPECT_LE(f[0] * f[0] * 9.0 + f[1] * f[1] * 16.0, 1.0 + 1e-12);
  }
  EXPECT_DOUBLE_EQ(clip_factors({Clipping::flat, 1.0f, 0.0f}, squares)[0], 0.2);
  EXPECT_DOUBLE_EQ(clip_factors({Clipping::flat, 10.0f, 0.0f}, squares)[1], 1.0);
  EXPECT_EQ(clip_factors({Clipping::flat, 1.0f, 0.0f}, {9.0, NAN}), (Values{0.0, 0.0}));
}

}  // namespace
}  // namespace cudp::reference
