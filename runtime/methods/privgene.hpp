#pragma once
#include <cstddef>

#include "runtime/methods/linear_method.hpp"

namespace cudp {

struct PrivGeneOptions {
  std::int64_t generations = 0;
  std::int64_t candidates = 200;
  std::int64_t parents = 10;
};

/// Method PrivGene: a genetic algorithm. In each generation the exponential mechanism chooses the
/// fittest candidate models as parents. The next generation is made from them by crossover and
/// mutation, which read no data. One model of the last generation is chosen and released;
/// everything else stays private. Zhang, Xiao, Yang, Zhang, Winslett 2013, "PrivGene:
/// Differentially Private Model Fitting Using Genetic Algorithms".
///
/// The fitness of a model is the sum of losses, each clipped to [0, C_obj]; smaller is better.
/// Adding one example raises every model's fitness by between 0 and C_obj. So a choice with weights
/// exp(-e fitness / C_obj) has a privacy loss in an interval of length e.
///
/// Differences from the paper:
/// - This code uses the plain exponential mechanism. The noise of the paper's enhanced mechanism
///   depends on by how much an example can change the difference of two candidates' fitness. With
///   losses clipped to [0, C_obj], that is C_obj, too. Since an example changes all scores in the
///   same direction, the plain mechanism needs no more noise.
/// - The budget is (epsilon, delta), as in DP-AGD, and a choice whose privacy loss has a range of
///   length e costs e^2/8 in zCDP (Cesar, Rogers 2021). In the paper the budget is an epsilon
///   without delta, and the choice costs e.
/// - The m' parents of a generation are the models with the m' smallest fitnesses after adding
///   Gumbel noise, one number each. This equals m' exponential mechanisms, each without those
///   chosen before (Durfee, Rogers 2019, arXiv:1905.04273, Lemma 4.2). Fitnesses are exact sums on
///   a grid, and their noisy order is that of real numbers (noisy_min.hpp), so the proof holds for
///   what is released.
/// - Parents stay candidates. A mutation moves one coordinate, by up to 1 in the first generation
///   and by less in each later one.
class PrivGene final : public LinearMethod {
 public:
  PrivGene(const TrainConfig& config, const LinearProblem& facts);

  std::vector<privacy::Release> releases() const override;
  double epsilon_of(double rows) const override;
  std::vector<float> fit(const LinearTask& task) const override;

  std::size_t generations() const { return generations_; }
  double selection_epsilon() const { return selection_epsilon_; }

 protected:
  void describe_mechanism(privacy::Promise& promise,
                          std::vector<privacy::Release> releases) const override;

 private:
  Loss loss_;
  double delta_;
  double loss_clip_;
  double max_examples_;  ///< upper bound on the number of examples
  double rho_before_;    ///< zCDP cost of the releases before training
  std::size_t candidates_;
  std::size_t parents_;
  std::size_t generations_;
  std::size_t choices_;  ///< number of noisy choices in all generations
  double selection_epsilon_;
};

MethodEntry privgene_method();

}  // namespace cudp
