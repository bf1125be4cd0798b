// SPDX-License-Identifier: Apache-2.0
// The members of a request, each declared once: its name in JSON, its option on a command line, where it lies. What
// reads, writes or renders requests visits them.
#pragma once

#include "engine/request.hpp"

namespace strata::engine {

// A list whose option is given once for each value.
template <class Values>
struct Repeated {
  Values& values;
};

// `visit(name, option, member)`; of the model, which is no option, the latter is empty. `Request` may be const.
template <class Request, class Visit>
void visit_comparison(Request& request, Visit&& visit) {
  auto& o = request.options;
  visit("model", "", o.model);
  visit("batch", "--batch", o.batches);
  visit("threads", "--threads", o.thread_counts);
  visit("size", "--size", o.size);
  visit("input", "--input", Repeated{o.inputs});
  visit("inputs", "--inputs", o.input_file);
  visit("input_from", "--input-from", o.input_from);
  visit("synthetic", "--synthetic", o.synthetic);
  visit("dataset", "--dataset", o.dataset);
  visit("data_dir", "--data-dir", request.data_dir);
  visit("skip_bad", "--skip-bad", request.skip_bad);
  visit("weights", "--weights", o.weights);
  visit("seed", "--seed", o.seed);
  visit("mode", "--mode", o.mode);
  visit("precision", "--precision", o.precision);
  visit("device", "--device", o.device);
  visit("optimiser", "--optimiser", o.optimiser);
  visit("loss", "--loss", o.loss);
  visit("levels", "--levels", o.levels);
  visit("reference", "--reference", o.reference);
  visit("eval", "--eval", o.eval);
  visit("tuned", "--tuned", o.tuned);
  visit("clients", "--clients", o.clients);
  visit("slo", "--slo", o.slo);
  visit("dynamic", "--dynamic", o.dynamic);
  visit("deep", "--deep", o.deep);
  visit("aa", "--aa", o.aa);
  visit("preset", "--preset", o.preset);
  visit("restarts", "--restarts", o.restarts);
  visit("budget_s", "--budget", o.budget_s);
  visit("ci_width", "--ci-width", o.ci_width);
  visit("order_seed", "--order-seed", o.order_seed);
  visit("weight_sets", "--weight-sets", o.weight_sets);
  visit("timeout_s", "--timeout", o.timeout_s);
  visit("memory_limit_gib", "--memory-limit", o.memory_limit_gib);
  visit("allow_debug", "--allow-debug", o.allow_debug);
  visit("fresh", "--fresh", o.fresh);
  visit("name", "--name", o.name);
  visit("python", "--python", request.python);
  visit("environments", "--env", Repeated{o.environments});
}

template <class Request, class Visit>
void visit_sweep(Request& request, Visit&& visit) {
  visit_comparison(request, visit);
  visit("point_time_s", "--point-time", request.point_time_s);
  visit("retry", "--retry", request.retry);
  visit("full_proof", "--full-proof", request.full_proof);
  visit("find_batch", "--find-batch", request.find_batch);
}

}  // namespace strata::engine
