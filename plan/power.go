package plan

import "fmt"

// Power is the power at the planned load, or while a job runs, modelled from how busy the GPUs are.
type Power struct {
	// Rate is the load of one instance, GPUWatts the mean power of one of its GPUs at that load, InstanceKW the
	// facility's power for an instance, servers and cooling included, and FleetKW that for all.
	Rate       float64 `json:"rate_per_s"`
	GPUWatts   float64 `json:"gpu_watts"`
	InstanceKW float64 `json:"instance_kw"`
	FleetKW    float64 `json:"fleet_kw"`
	// JoulesPerOutputToken and JoulesPerToken count all of that power.
	JoulesPerOutputToken float64 `json:"joules_per_output_token"`
	JoulesPerToken       float64 `json:"joules_per_token"`
	// RelativeError is how far these may be off until they are measured.
	RelativeError float64 `json:"relative_error"`
}

// NewPower returns the power of a fleet whose GPUs draw gpuWatts each.
func NewPower(o *Offer, f *Fleet, rate, gpuWatts, relativeError float64) *Power {
	p := &Power{Rate: rate, GPUWatts: gpuWatts, RelativeError: relativeError}
	perGPU := (gpuWatts + o.ServerWatts) / 1000 * o.PUE
	p.InstanceKW = perGPU * float64(f.GPUsPerInstance)
	p.FleetKW = perGPU * float64(f.GPUs)
	perRequest := 1000 * p.InstanceKW / rate
	if o.OutputTokens > 0 {
		p.JoulesPerOutputToken = perRequest / o.OutputTokens
		p.JoulesPerToken = perRequest / (o.PromptTokens + o.OutputTokens)
	}
	return p
}

// SetPower records the plan's power. The energy beside rented GPUs is then computed from it; bought GPUs have
// energy at rated power in their price, as the kinds of instances were compared that way.
func (p *Plan) SetPower(power *Power) {
	p.Evidence.Power = power
	if p.Cost.EnergyPerHour == nil {
		return
	}
	energy := power.FleetKW * p.Offer.PowerPrice
	for i := range p.Cost.Ways {
		if w := &p.Cost.Ways[i]; w.Name != Purchase {
			w.EnergyPerHour = &energy
		}
	}
	if p.Offer.Bought() {
		return
	}
	p.Cost.EnergyPerHour = &energy
	if m := p.Cost.AtMean; m != nil { // which takes no more than the planned rate
		m.EnergyPerHour = &energy
	}
	p.Assumptions = append(p.Assumptions, fmt.Sprintf("the energy beside rented GPUs is that of the modelled power %s, %.3g W a GPU within %.0f %%, and of rated power at capacity",
		p.Loaded(), power.GPUWatts, 100*power.RelativeError))
}

// Loaded says in words when a plan's power and energy are drawn.
func (p *Plan) Loaded() string {
	if p.Demand.Job != nil {
		return "while the job runs"
	}
	return "at the planned load"
}

// Bought reports whether the offer's price is that of bought GPUs.
func (o *Offer) Bought() bool { return len(o.Terms) > 0 && o.Terms[0].Name == Purchase }
