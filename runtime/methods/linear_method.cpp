#include "runtime/methods/linear_method.hpp"

#include <stdexcept>

#include "runtime/base/error.hpp"
#include "runtime/methods/objective_perturbation.hpp"
#include "runtime/methods/output_perturbation.hpp"
#include "runtime/methods/privgene.hpp"

namespace cudp {

bool is_linear_method(MethodKind method) {
  return method == MethodKind::outpert || method == MethodKind::objpert ||
         method == MethodKind::privgene;
}

std::unique_ptr<LinearMethod> make_linear_method(const TrainConfig& config,
                                                 const LinearFacts& facts) {
  try {
    if (config.method == MethodKind::outpert)
      return std::make_unique<OutputPerturbation>(config, facts);
    if (config.method == MethodKind::objpert)
      return std::make_unique<ObjectivePerturbation>(config, facts);
    if (config.method == MethodKind::privgene) return std::make_unique<PrivGene>(config, facts);
  } catch (const std::domain_error& e) {
    throw BudgetError(e.what());
  }
  throw InputError("method: expected outpert, objpert or privgene");
}

}  // namespace cudp
