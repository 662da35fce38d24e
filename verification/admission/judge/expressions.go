package main

import (
	"errors"
	"fmt"

	admv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
)

// An API server takes a new policy only when its expressions compile with what the version before
// knew, so that it can be rolled back. These are the versions before the oldest that are supported.
var (
	beforeValidating = version.MajorMinor(1, 32)
	beforeMutating   = version.MajorMinor(1, 35)
)

// checkExpressions tells the expressions that the oldest supported API server would not take.
func checkExpressions(objects []runtime.Object) error {
	var problems []error
	for _, object := range objects {
		switch policy := object.(type) {
		case *admv1.ValidatingAdmissionPolicy:
			problems = append(problems, checkValidating(policy))
		case *admv1.MutatingAdmissionPolicy:
			problems = append(problems, checkMutating(policy))
		}
	}
	return errors.Join(problems...)
}

func checkValidating(policy *admv1.ValidatingAdmissionPolicy) error {
	spec := policy.Spec
	c, err := newChecker(policy.Name, beforeValidating, spec.ParamKind != nil, spec.Variables)
	if err != nil {
		return err
	}
	for _, condition := range spec.MatchConditions {
		c.check(condition.Name, (*matchconditions.MatchCondition)(&condition), false)
	}
	for _, validation := range spec.Validations {
		c.check(validation.Message, &validating.ValidationCondition{Expression: validation.Expression}, false)
		if validation.MessageExpression != "" {
			c.check(validation.Message, &validating.MessageExpressionCondition{MessageExpression: validation.MessageExpression}, false)
		}
	}
	return errors.Join(c.problems...)
}

func checkMutating(policy *admv1.MutatingAdmissionPolicy) error {
	spec := policy.Spec
	c, err := newChecker(policy.Name, beforeMutating, spec.ParamKind != nil, spec.Variables)
	if err != nil {
		return err
	}
	for _, condition := range spec.MatchConditions {
		c.check(condition.Name, (*matchconditions.MatchCondition)(&condition), false)
	}
	for _, mutation := range spec.Mutations {
		if mutation.JSONPatch != nil {
			c.check("the JSON patch", &patch.JSONPatchCondition{Expression: mutation.JSONPatch.Expression}, true)
		}
	}
	return errors.Join(c.problems...)
}

type checker struct {
	policy   string
	compiler *cel.CompositedCompiler
	options  cel.OptionalVariableDeclarations
	problems []error
}

func newChecker(policy string, before *version.Version, parameters bool, variables []admv1.Variable) (*checker, error) {
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(before))
	if err != nil {
		return nil, err
	}
	c := &checker{policy: policy, compiler: compiler, options: cel.OptionalVariableDeclarations{HasParams: parameters, HasAuthorizer: true}}
	for _, variable := range variables {
		named := &validating.Variable{Name: variable.Name, Expression: variable.Expression}
		c.add(variable.Name, compiler.CompileAndStoreVariable(named, c.options, environment.NewExpressions))
	}
	return c, nil
}

func (c *checker) check(what string, expression cel.ExpressionAccessor, patches bool) {
	options := c.options
	options.HasPatchTypes = patches
	c.add(what, c.compiler.CompileCELExpression(expression, options, environment.NewExpressions))
}

func (c *checker) add(what string, compiled cel.CompilationResult) {
	if compiled.Error != nil {
		c.problems = append(c.problems, fmt.Errorf("%s: %s: %s", c.policy, what, compiled.Error.Detail))
	}
}
