#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/layers/loss.hpp"
#include "kernels/random/random.hpp"
#include "privacy/mechanism.hpp"
#include "runtime/config/config.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// What a linear method may know of the data before it looks at them.
struct LinearFacts {
  Loss loss = Loss::logistic;
  int dimension = 0;        ///< features and a constant
  double examples = 1.0;    ///< N, or the noisy one
  double most = 1.0;        ///< a bound on N, see TrainingSize::most
  double size_noise = 0.0;  ///< standard deviation of the noise on that, 0 if N is public
};

/// Where the examples are and what a method draws from. Numbers of streams are its own.
struct LinearTask {
  const Dataset& train;
  int threads;
  Generator generator;
  const RandomKey& key;
};

/// A method for linear models of two classes that knows all its releases before the first, and
/// trains in one go: under one key always the same, so that who begins again releases nothing new.
class LinearMethod {
 public:
  LinearMethod() = default;
  LinearMethod(const LinearMethod&) = delete;
  LinearMethod& operator=(const LinearMethod&) = delete;
  virtual ~LinearMethod() = default;

  /// What the ledger is to be charged, besides the noisy size, before training starts.
  virtual std::vector<privacy::Step> releases() const = 0;
  /// The epsilon of those together with the noisy size, at the config's delta.
  virtual double epsilon() const = 0;
  /// The weights of the features as they are read, and the bias.
  virtual std::vector<float> train(const LinearTask& task) const = 0;
  /// Why the result must not be released, in words; empty where it may. A function of public
  /// numbers.
  virtual std::vector<std::string> obstacles() const { return {}; }
  /// What the certificate says beside that.
  virtual void describe(nlohmann::ordered_json& certificate) const = 0;
};

bool is_linear_method(MethodKind method);

/// Chooses by config.method. config.epsilon and config.delta must be set. Throws BudgetError where
/// they allow nothing.
std::unique_ptr<LinearMethod> make_linear_method(const TrainConfig& config,
                                                 const LinearFacts& facts);

}  // namespace cudp
