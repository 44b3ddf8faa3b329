#include "runtime/run/observation.hpp"

#include <algorithm>
#include <filesystem>
#include <string>

#include "privacy/ledger.hpp"
#include "runtime/config/choices.hpp"
#include "runtime/config/seeded_key.hpp"
#include "runtime/data/numbering.hpp"
#include "runtime/gate/release_observer.hpp"
#include "runtime/run/authenticator.hpp"

namespace cudp {
namespace {

/// Returns the number of releases that the ledger's file on disk has charges for, i.e. that would
/// be known after a crash.
std::uint64_t charged_on_disk(const std::filesystem::path& ledger) {
  if (!std::filesystem::exists(ledger)) return 0;
  std::uint64_t charged = 0;
  for (const privacy::Release& release :
       privacy::Ledger::from_text(read_authenticated(ledger).content, ledger.string()).releases())
    charged += release.count;
  return charged;
}

}  // namespace

void observe_beginning(const Run& run, const Training& training) {
  auto* const o = dynamic_cast<SecretObserver*>(training.release_observer());
  if (o == nullptr) return;
  const Experiment& e = training.experiment();
  transcript::Begin begin{.generator = std::string(name_of(e.config.rng)),
                          .key = {},
                          .examples = Numbering(e.data.train).end(),
                          .step = training.step()};
  std::ranges::copy(training.key().words, begin.key.begin());
  o->begin(SeededKey(e.config), begin, [&run] { return charged_on_disk(run.folder.ledger()); });
}

void observe_state(const Run& run) {
  SecretObserver* const o = observer(run.training->release_observer());
  if (o == nullptr) return;
  const MethodState s = run.training->method().state();
  o->on_record(transcript::State{.parameters = s.array("parameters"),
                                 .moment1 = s.array("moment1"),
                                 .moment2 = s.array("moment2"),
                                 .average = s.array("average")});
}

}  // namespace cudp
