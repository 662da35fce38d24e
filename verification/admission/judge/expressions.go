package main

import (
	"errors"
	"fmt"

	admv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
)

// An API server takes a new policy only when its expressions compile with what the version before
// knew, so that it can be rolled back. This is the version before the oldest that is supported.
var beforeOldest = version.MajorMinor(1, 32)

// checkExpressions tells the expressions that the oldest supported API server would not take.
func checkExpressions(objects []runtime.Object) error {
	var problems []error
	for _, object := range objects {
		if policy, is := object.(*admv1.ValidatingAdmissionPolicy); is {
			problems = append(problems, checkValidating(policy))
		}
	}
	return errors.Join(problems...)
}

func checkValidating(policy *admv1.ValidatingAdmissionPolicy) error {
	spec := policy.Spec
	c, err := newChecker(policy.Name, spec.ParamKind != nil, spec.Variables)
	if err != nil {
		return err
	}
	for _, condition := range spec.MatchConditions {
		c.check(condition.Name, (*matchconditions.MatchCondition)(&condition))
	}
	for _, validation := range spec.Validations {
		c.check(validation.Message, &validating.ValidationCondition{Expression: validation.Expression})
		if validation.MessageExpression != "" {
			c.check(validation.Message, &validating.MessageExpressionCondition{MessageExpression: validation.MessageExpression})
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

func newChecker(policy string, parameters bool, variables []admv1.Variable) (*checker, error) {
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(beforeOldest))
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

func (c *checker) check(what string, expression cel.ExpressionAccessor) {
	c.add(what, c.compiler.CompileCELExpression(expression, c.options, environment.NewExpressions))
}

func (c *checker) add(what string, compiled cel.CompilationResult) {
	if compiled.Error != nil {
		c.problems = append(c.problems, fmt.Errorf("%s: %s: %s", c.policy, what, compiled.Error.Detail))
	}
}
