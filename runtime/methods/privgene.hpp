#pragma once
#include <cstddef>

#include "runtime/methods/linear_method.hpp"

namespace cudp {

struct PrivGeneOptions {
  std::int64_t generations = 0;
  std::int64_t candidates = 200;
  std::int64_t parents = 10;
};

/// PrivGene: Zhang, Xiao, Yang, Zhang, Winslett 2013, "PrivGene: Differentially Private Model
/// Fitting Using Genetic Algorithms". A generation of candidate models leaves its fittest, chosen
/// by the exponential mechanism, as parents; the next one is their children, by crossover and
/// mutation, which look at no data. Of the last generation one is chosen and released; all else
/// stays inside.
///
/// Fitness is the sum of losses, each clipped to [0, C_obj]: one example more or less moves it by
/// C_obj at most, and all of a generation's in one direction. So a choice with weights
/// exp(-e fitness / C_obj) has a privacy loss in an interval of length e.
///
/// Departs from the paper:
/// - The plain exponential mechanism, not the paper's enhanced one, whose noise follows how far an
///   example can move the difference of two candidates' fitness: with losses clipped to [0, C_obj]
///   that is C_obj too, and scores that all move in one direction need no more in the plain one.
/// - Choices are charged as releases of bounded range in zCDP (e^2/8 each; Cesar, Rogers 2021)
///   against (epsilon, delta), as DP-AGD's are, instead of e each against a pure epsilon.
/// - The m' parents of a generation are the m' least of the fitnesses with Gumbel noise, one draw
///   each, which is m' exponential mechanisms, each without those chosen before (Durfee, Rogers
///   2019, arXiv:1905.04273, Lemma 4.2). Fitnesses are exact sums on a grid, and their order with
///   noise is that of real numbers (noisy_min.hpp), so the proof holds of what is released.
/// - Parents stay candidates. A mutation moves one coordinate, by up to 1 in the first generation
///   and less in each later one.
class PrivGene final : public LinearMethod {
 public:
  PrivGene(const TrainConfig& config, const LinearFacts& facts);

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
  double max_examples_;  ///< examples, at most
  double rho_before_;    ///< of what was released before
  std::size_t candidates_;
  std::size_t parents_;
  std::size_t generations_;
  std::size_t choices_;  ///< of all generations
  double selection_epsilon_;
};

MethodEntry privgene_method();

}  // namespace cudp
